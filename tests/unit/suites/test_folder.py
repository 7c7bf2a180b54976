"""Folders of tasks: every form side by side, broken ones named, quarantine, lazy reading."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from milo.core.errors import TaskError
from milo.core.plan import SuitePlan
from milo.core.tree import FileTree
from milo.suites import quarantine
from milo.suites.folder import load_folder, scan_folder
from milo.suites.lazy import FolderTree
from milo.suites.quarantine import Held
from milo.suites.simple import load_task
from milo.suites.suite import load_suite


def put(folder: Path, **files: str) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def simple(root: Path, name: str, **files: str) -> Path:
    own = {"instruction.md": "Sort it.\n", "check.py": "raise SystemExit(0)\n"}
    return put(root / name, **{**own, **files})


def harbor(root: Path, name: str, toml: str = "") -> Path:
    own = {
        "task.toml": toml,
        "instruction.md": "Sort it.\n",
        "environment/Dockerfile": "FROM x\nWORKDIR /workspace\n",
        "tests/test.sh": "#!/bin/sh\n",
    }
    return put(root / name, **own)


def terminal_bench(root: Path, name: str) -> Path:
    own = {"task.yaml": "instruction: Sort it.\n", "Dockerfile": "FROM x\n", "run-tests.sh": "true"}
    return put(root / name, **own)


def test_every_form_may_stand_beside_the_others(tmp_path: Path) -> None:
    simple(tmp_path, "a")
    harbor(tmp_path, "b")
    terminal_bench(tmp_path, "c")
    put(tmp_path, **{"README.md": "about", ".git/config": "x"})
    assert list(load_folder(tmp_path)) == ["a", "b", "c"]


def test_every_broken_task_is_named_with_its_file_and_the_others_load(tmp_path: Path) -> None:
    harbor(tmp_path, "good")
    harbor(tmp_path, "bad-key", "[agent]\ntimeout = 3\n")
    simple(tmp_path, "two-checks", **{"check.sh": "true"})
    put(tmp_path / "stray", **{"notes.txt": "x"})
    scan = scan_folder(tmp_path)
    assert list(scan.tasks) == ["good"]
    assert list(scan.broken) == ["bad-key", "stray", "two-checks"]
    assert "bad-key/task.toml key 'agent.timeout'" in str(scan.broken["bad-key"])


def test_one_task_by_itself_is_a_suite_of_one(tmp_path: Path) -> None:
    assert list(load_folder(simple(tmp_path, "only"))) == ["only"]


def test_a_simple_task_brings_files_data_for_its_check_and_a_solution(tmp_path: Path) -> None:
    more = {"files/in.txt": "b\na\n", "check/expected.txt": "a\nb\n", "solution.sh": "sort in.txt"}
    task = load_task(simple(tmp_path, "t", **more))
    assert list(task.workspace) == ["in.txt"]
    assert list(task.tests) == ["check.py", "expected.txt", "test.sh"]
    assert 'python3 -I "$tests/check.py"' in task.tests.text("test.sh")
    assert task.has_solution


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"check.sh": "true"}, "one check, check.sh or check.py, found check.sh and check.py"),
        ({"instruction.md": " \n"}, "an instruction"),
        ({"chek/data": "x"}, "expected one of LICENSE"),
    ],
)
def test_a_broken_simple_task_is_named(tmp_path: Path, files: dict[str, str], words: str) -> None:
    with pytest.raises(TaskError, match=words):
        load_task(simple(tmp_path, "t", **files))


def test_a_tree_is_read_when_it_is_looked_into_and_kept_as_it_was(tmp_path: Path) -> None:
    folder = put(tmp_path / "tree", **{"a.txt": "before", "b/c.txt": "c"})
    tree = FolderTree(folder)
    assert (list(tree), "b/c.txt" in tree, len(tree)) == (["a.txt", "b/c.txt"], True, 2)
    (folder / "a.txt").write_text("after")
    assert tree.text("a.txt") == "after"
    (folder / "a.txt").write_text("later")
    assert tree.text("a.txt") == "after"
    assert tree == FileTree.of_texts({"a.txt": "after", "b/c.txt": "c"})


def test_a_tree_travels_with_its_content(tmp_path: Path) -> None:
    tree = FolderTree(put(tmp_path / "tree", **{"a.txt": "a"}))
    copy = pickle.loads(pickle.dumps(tree))
    assert (type(copy), copy) == (FileTree, FileTree.of_texts({"a.txt": "a"}))


def test_a_tree_that_lost_a_file_since_it_was_listed_is_refused(tmp_path: Path) -> None:
    folder = put(tmp_path / "tree", **{"a.txt": "a", "b.txt": "b"})
    tree = FolderTree(folder)
    (folder / "b.txt").unlink()
    with pytest.raises(TaskError, match="when it was listed"):
        tree.text("a.txt")


def plan_of(folder: Path, size: int = 1) -> SuitePlan:
    return SuitePlan(name="mine", path=str(folder), search=size, validation=size, test=0)


def test_a_run_leaves_out_what_is_in_quarantine_and_says_why(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        simple(tmp_path, name)
    harbor(tmp_path, "d", "[agent]\ntimeout = 3\n")
    digest = load_task(tmp_path / "b").digest
    held = {"b": Held(reason="bad reference", digest=digest), "d": Held(reason="broken")}
    quarantine.write(tmp_path, held)
    suite = load_suite(plan_of(tmp_path))
    assert sorted(suite.tasks) == ["a", "c"]
    assert suite.left_out == {"b": "bad reference", "d": "broken"}
    with pytest.raises(TaskError, match="2 tasks, 2 more being in quarantine"):
        load_suite(plan_of(tmp_path, 2))


def test_a_task_that_was_changed_is_out_of_quarantine(tmp_path: Path) -> None:
    for name in ("a", "b"):
        simple(tmp_path, name)
    quarantine.write(tmp_path, {"b": Held(reason="bad", digest=load_task(tmp_path / "b").digest)})
    simple(tmp_path, "b", **{"check.py": "raise SystemExit(1)\n"})
    assert sorted(load_suite(plan_of(tmp_path)).tasks) == ["a", "b"]


def test_a_broken_task_that_is_not_in_quarantine_stops_the_run(tmp_path: Path) -> None:
    for name in ("a", "b"):
        simple(tmp_path, name)
    harbor(tmp_path, "d", "[agent]\ntimeout = 3\n")
    with pytest.raises(TaskError, match=r"'agent\.timeout'.*milo suite check"):
        load_suite(plan_of(tmp_path))


def test_a_run_holds_only_the_tasks_of_its_splits(tmp_path: Path) -> None:
    for number in range(9):
        simple(tmp_path, f"t{number}")
    assert len(load_suite(plan_of(tmp_path, 2)).tasks) == 4


def test_an_empty_quarantine_leaves_no_file_and_a_mangled_one_is_refused(tmp_path: Path) -> None:
    quarantine.write(tmp_path, {"a": Held(reason="bad", digest="1")})
    assert quarantine.read(tmp_path) == {"a": Held(reason="bad", digest="1")}
    quarantine.write(tmp_path, {})
    assert not (tmp_path / quarantine.FILE).exists()
    (tmp_path / quarantine.FILE).write_text("[]")
    with pytest.raises(TaskError, match=r"quarantine\.json"):
        quarantine.read(tmp_path)


@pytest.mark.parametrize("name", ["files", "check"])
def test_a_file_where_a_tasks_folder_should_be_is_no_empty_folder(
    tmp_path: Path, name: str
) -> None:
    """What breaks without it: every attempt starts in an empty workspace, and nobody is told."""
    task = simple(tmp_path, "t", **{name: "I meant a folder"})
    with pytest.raises(TaskError, match=f"{name}: expected a folder"):
        load_task(task)


def test_a_tasks_file_whose_name_is_no_utf8_is_refused_when_it_is_listed(tmp_path: Path) -> None:
    task = simple(tmp_path, "t", **{"files/a.txt": "a"})
    (task / "files" / os.fsdecode(b"caf\xe9")).write_text("x")
    with pytest.raises(TaskError, match="a name in UTF-8"):
        load_task(task)


@pytest.mark.parametrize("name", ["line\nbreak", "red\x1b[31m", os.fsdecode(b"caf\xe9")])
def test_a_task_whose_name_can_not_be_printed_is_named_so_that_it_can(
    tmp_path: Path, name: str
) -> None:
    """What breaks without it: orders to the terminal, or records that can't be written."""
    simple(tmp_path, name)
    ((shown, error),) = scan_folder(tmp_path).broken.items()
    assert f"{shown} {error}".isprintable() and "a name that can be printed" in str(error)


def test_a_link_where_a_task_was_is_not_passed_over(tmp_path: Path) -> None:
    simple(tmp_path, "good")
    (tmp_path / "gone").symlink_to(tmp_path / "elsewhere")
    scan = scan_folder(tmp_path)
    assert list(scan.tasks) == ["good"]
    assert "a link that leads nowhere" in str(scan.broken["gone"])


def test_a_folder_where_the_reference_should_be_is_no_missing_reference(tmp_path: Path) -> None:
    task = simple(tmp_path, "t", **{"solution.sh/solve.sh": "true"})
    with pytest.raises(TaskError, match=r"solution\.sh: expected a file"):
        load_task(task)
