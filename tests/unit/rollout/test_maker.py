"""A maker's name tells a living process from a dead one, and from one that can't be seen."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from milo.app.leftovers import Leftovers
from milo.core.plan import ClusterPlan
from milo.rollout.maker import is_abandoned, maker_name, this_maker
from milo.rollout.scratch import make_folder, owner_label, reap_dead, reap_folders


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


def folder_of(root: Path, maker: str, owner: str = "other-0a1b2c3d") -> Path:
    """A folder as a process of some run makes it."""
    folder = root / f"milo-{owner}.{maker}.abcd_123"
    folder.mkdir()
    (folder / "gateway.sock").touch()
    return folder


def dead() -> str:
    """The name of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    name = maker_name(process.pid)
    process.communicate()
    return name


def test_the_next_start_removes_what_the_dead_of_other_runs_left(tmp_path: Path) -> None:
    """What breaks without it: a run that is killed with its warden, and is never gone on with,
    leaves its folders for ever."""
    folder_of(tmp_path, dead())
    place, pid, start = maker_name(os.getppid()).split("-")
    folder_of(tmp_path, f"{place[:4]}ffff{place[8:]}-{pid}-{start}", "before-the-boot")
    assert reap_dead(tmp_path) == 2 and not list(tmp_path.iterdir())


def test_nothing_of_the_living_nor_of_anybody_unknown_is_removed(tmp_path: Path) -> None:
    place, pid, _ = maker_name(os.getppid()).split("-")
    kept = [
        folder_of(tmp_path, maker_name(os.getppid())),
        folder_of(tmp_path, this_maker()),
        folder_of(tmp_path, f"ffff{place[4:]}-{pid}-1"),
        folder_of(tmp_path, f"{place[:8]}ffff-{pid}-1"),
        folder_of(tmp_path, "no-maker-x"),
    ]
    for name in ("milo-agents.log", "milo-images-0", f"milo-x.{dead()}", f"other.{dead()}.abcd"):
        kept.append(tmp_path / name)
        kept[-1].mkdir()
    kept.append(tmp_path / f"milo-link.{dead()}.abcd_123")
    kept[-1].symlink_to(tmp_path)
    assert reap_dead(tmp_path) == 0
    assert sorted(tmp_path.iterdir()) == sorted(kept)


async def test_a_sweep_takes_the_folders_of_the_dead_from_both_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("milo.app.leftovers.scratch_root", lambda: tmp_path / "memory")
    (tmp_path / "memory").mkdir()
    for root in (tmp_path, tmp_path / "memory"):
        folder_of(root, dead())
    living = folder_of(tmp_path, maker_name(os.getppid()))
    await Leftovers(cluster=ClusterPlan(sandbox="plain"), owner="mine").sweep()
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "memory", living])
    assert not list((tmp_path / "memory").iterdir())
