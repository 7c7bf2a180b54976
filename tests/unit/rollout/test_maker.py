"""A maker's name tells a living process from a dead one, and from one that can't be seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from milo.rollout.maker import is_abandoned, maker_name, this_maker
from milo.rollout.scratch import make_folder, owner_label, reap_folders


def test_what_this_process_made_it_may_ask_to_be_rid_of() -> None:
    assert this_maker() == maker_name(os.getpid())
    assert is_abandoned(this_maker())


def test_a_living_process_has_not_abandoned_anything_and_a_reused_pid_is_not_it() -> None:
    parent = maker_name(os.getppid())
    assert not is_abandoned(parent)
    place, pid, start = parent.split("-")
    assert is_abandoned(f"{place}-{pid}-{int(start, 16) + 1:x}")


def test_a_process_that_ended_has_abandoned_what_it_made() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    name = maker_name(process.pid)
    assert not is_abandoned(name)
    process.communicate()
    assert is_abandoned(name)


def test_an_earlier_boot_is_dead_and_another_machine_or_space_is_let_alone() -> None:
    place, pid, start = maker_name(os.getppid()).split("-")
    machine, boot, space = place[:4], place[4:8], place[8:]
    assert is_abandoned(f"{machine}zzzz{space}-{pid}-{start}")
    assert not is_abandoned(f"zzzz{boot}{space}-{pid}-{start}")
    assert not is_abandoned(f"{machine}{boot}zzzz-{pid}-{start}")


def test_a_name_that_cannot_be_read_belongs_to_nobody() -> None:
    assert all(is_abandoned(name) for name in ("", "x", "a-b-c", f"{this_maker()}-1"))


def test_a_host_does_not_remove_what_a_living_host_of_the_same_run_uses(tmp_path: Path) -> None:
    mine = make_folder(tmp_path, "run", shared=False)
    _, _, rest = mine.name.rpartition(".")
    living = tmp_path / f"milo-{owner_label('run')}.{maker_name(os.getppid())}.{rest}"
    living.mkdir()
    assert reap_folders(tmp_path, "run") == 1
    assert list(tmp_path.iterdir()) == [living]


def test_names_leave_room_for_a_socket_below_the_folder_in_memory(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, "x" * 200, shared=False)
    assert len(f"/dev/shm/{folder.name}/gateway.sock") < 100
