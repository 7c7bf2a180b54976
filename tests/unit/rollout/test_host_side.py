"""Captures, scratch names, sealing rules, trace texts: the parts without processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from milo.core.errors import ConfigError, HarnessError
from milo.core.ports import Command
from milo.core.task import Limits
from milo.core.tree import File, FileTree
from milo.rollout.capture import Capture
from milo.rollout.cgroups import Cgroup
from milo.rollout.changes import FILE_CHARS, TOO_MUCH, changed_texts
from milo.rollout.commands import absolute_argv, limited
from milo.rollout.folder import Folder, leads_out
from milo.rollout.local import choose
from milo.rollout.scratch import (
    TreeShelf,
    is_of_owner,
    make_folder,
    owner_label,
    reap_folders,
    remove_folder,
    scratch_root,
)
from milo.rollout.system import etc_tree, find_python, system_arguments


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_a_capture_keeps_head_and_tail_however_it_is_fed(chunk: int) -> None:
    capture, data = Capture(20), b"0123456789" + b"x" * 500 + b"abcdefghij"
    for start in range(0, len(data), chunk):
        capture.feed(data[start : start + chunk])
    assert capture.text() == "0123456789\n[… 500 bytes left out …]\nabcdefghij"


def test_a_capture_leaves_short_output_alone() -> None:
    capture = Capture(20)
    capture.feed(b"short\xff")
    assert capture.text() == "short�"


def test_owners_never_share_a_label() -> None:
    owners = ["a", "a-b", "a.b", "a/b", "a b", "", "x" * 100, "x" * 101]
    assert len({owner_label(owner) for owner in owners}) == len(owners)


def test_an_owner_is_not_taken_for_a_longer_one(tmp_path: Path) -> None:
    mine, other = (make_folder(tmp_path, owner, shared=False) for owner in ("run-1", "run-12"))
    assert is_of_owner(mine.name, "run-1") and not is_of_owner(other.name, "run-1")
    assert reap_folders(tmp_path, "run-1") == 1
    assert list(tmp_path.iterdir()) == [other]


def test_scratch_lies_in_memory_only_where_there_is_room(tmp_path: Path) -> None:
    assert scratch_root(tmp_path, min_free=1) == tmp_path
    assert scratch_root(tmp_path, min_free=1 << 62) != tmp_path
    assert scratch_root(tmp_path / "none", min_free=1) != tmp_path / "none"


def test_a_tree_is_on_the_shelf_while_anyone_uses_it(tmp_path: Path) -> None:
    shelf, tree = TreeShelf(tmp_path, shared=True), FileTree.of_texts({"a/b": "1"})
    first = shelf.take("me", tree)
    assert shelf.take("me", tree) == first
    assert shelf.take("you", tree) != first
    shelf.drop("me", tree)
    assert (first / "a/b").read_text() == "1"
    shelf.drop("me", tree)
    assert not first.exists()


def test_a_folder_is_removed_however_closed(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, "me", shared=False)
    (folder / "a/b").mkdir(parents=True)
    (folder / "a").chmod(0)
    remove_folder(folder)
    remove_folder(folder)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("target", "depth", "out"),
    [
        ("near", 0, False),
        ("a/b", 0, False),
        ("../near", 1, False),
        ("../near", 0, True),
        ("../../x", 1, True),
        ("a/../b", 0, True),
        ("/workspace/a", 0, False),
        ("/workspace/../tests", 0, True),
        ("/usr/bin/python3", 0, False),
        ("/usr/../tests/x", 0, True),
        ("/tests/expected", 0, True),
        ("/proc/self/root/tests", 0, True),
        ("//tests/x", 0, True),
        ("/", 0, True),
    ],
)
def test_links_that_may_lead_out_are_known(target: str, depth: int, out: bool) -> None:
    assert leads_out(target, depth) is out


def test_a_workspace_over_its_limit_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "me", FileTree.of_texts({"a": "x" * 100}), None)
    assert folder.read_workspace(100)["a"].data == b"x" * 100
    with pytest.raises(HarnessError, match="99 bytes"):
        folder.read_workspace(99)
    folder.close()
    folder.close()


def test_names_that_are_no_text_and_caches_are_left_out(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "me", FileTree.of_texts({"a": "1", "__pycache__/a.pyc": "2"}), None)
    (Path(os.fsdecode(os.fsencode(folder.workspace) + b"/\xff"))).write_text("3")
    assert sorted(folder.read_workspace(1000)) == ["a"]
    folder.close()


def test_logs_that_are_too_large_are_left_out_and_hide_no_others(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "me", FileTree(), None)
    for name, size in (("agent/a", 5 << 20), ("verifier/reward.txt", 1), ("tests/t", 1)):
        (folder.logs / name).write_bytes(b"1" * size)
    assert sorted(folder.read_logs()) == ["tests/t", "verifier/reward.txt"]
    folder.close()


def test_a_reward_is_read_however_full_the_logs_of_the_agent_are(tmp_path: Path) -> None:
    """Else a harness could make its failures missing, and be given another try."""
    folder = Folder(tmp_path, "me", FileTree(), None)
    for name, size in (("agent/a", 4 << 20), ("verifier/reward.txt", 1)):
        (folder.logs / name).write_bytes(b"1" * size)
    assert sorted(folder.read_logs()) == ["verifier/reward.txt"]
    folder.clear_logs()
    (folder.logs / "verifier").rmdir()
    (folder.logs / "verifier").symlink_to(tmp_path)
    assert sorted(folder.read_logs()) == []
    folder.close()


def test_a_workspace_that_was_shut_is_opened_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "me", FileTree(), None)
    folder.workspace.chmod(0o005)
    folder.unlock()
    assert folder.workspace.stat().st_mode & 0o777 == 0o705
    folder.close()


def test_sealing_looks_into_folders_that_were_shut(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "me", FileTree(), None)
    shut = folder.workspace / "shut"
    shut.mkdir()
    (shut / "trap").symlink_to("/tests/expected")
    shut.chmod(0o311)
    assert folder.seal() == ("shut/trap",)
    folder.close()


def test_logs_that_were_replaced_by_a_link_are_made_anew(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "me", FileTree(), None)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("keep")
    remove_folder(folder.logs)
    folder.logs.symlink_to(precious)
    folder.clear_logs()
    assert not folder.logs.is_symlink() and len(folder.read_logs()) == 0
    assert (precious / "file").read_text() == "keep"
    folder.close()


def test_changes_are_cut_by_file_and_in_all() -> None:
    before = FileTree.of_texts({"same": "1", "gone": "2"})
    after = {f"f{n:02}": File(b"y" * 10_000) for n in range(20)}
    texts = changed_texts(before, FileTree({**after, "same": before["same"]}))
    assert "same" not in texts
    assert len(texts["f00"]) < FILE_CHARS + 50 and "10000 bytes in all" in texts["f00"]
    assert TOO_MUCH in texts and sum(map(len, texts.values())) < 40_000


def test_deleted_and_binary_files_are_named_only() -> None:
    before, after = FileTree.of_texts({"gone": "2"}), FileTree({"bin": File(b"\0\1")})
    assert changed_texts(before, after) == {"bin": "[2 bytes, not text]", "gone": "[deleted]"}


def test_arguments_that_name_harness_files_become_absolute() -> None:
    mounts = {"/harness": FileTree.of_texts({"main.py": "", "lib/x": ""})}
    command = Command(argv=("python3", "main.py", "lib/x", "other"), timeout_s=1)
    assert absolute_argv(command, mounts) == (
        "python3",
        "/harness/main.py",
        "/harness/lib/x",
        "other",
    )
    assert absolute_argv(command, {}) == command.argv


def test_limits_are_one_shell_line() -> None:
    argv = limited(Limits(storage_mb=1, memory_mb=2), join_files=("/g",), address_space=True)
    assert argv[2] == (
        "echo $$ >'/g' && ulimit -c 0 && ulimit -n 1024 && ulimit -f 2048 && ulimit -v 2048"
        ' && exec "$@"'
    )


def test_a_hidden_folder_of_the_system_is_shown_empty() -> None:
    arguments = system_arguments(find_python(), (Path("/usr/lib"), Path("/nowhere")))
    assert "--tmpfs" in arguments
    assert "/nowhere" not in arguments
    assert "milo:x:7:8:" in etc_tree(7, 8).text("passwd")


def test_an_unknown_kind_of_sandbox_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"auto, bubblewrap, plain.*found dockr"):
        choose("dockr", root=tmp_path)


def test_the_plain_sandbox_announces_its_weakness(tmp_path: Path) -> None:
    sandbox = choose("plain", root=tmp_path)
    assert "WEAK" in sandbox.description
    assert not {"isolation", "no-network"} & sandbox.capabilities


@pytest.mark.parametrize(
    ("name", "words", "kills"),
    [
        ("memory.events", "low 0\nmax 9\noom 2\noom_kill 1\n", 1),
        ("memory.events", "low 0\nmax 0\noom 0\noom_kill 1\n", 0),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", 0),
    ],
)
def test_a_host_without_memory_is_not_taken_for_a_limit(
    tmp_path: Path, name: str, words: str, kills: int
) -> None:
    (tmp_path / name).write_text(words)
    assert Cgroup(folders=(tmp_path,)).oom_kills() == kills
