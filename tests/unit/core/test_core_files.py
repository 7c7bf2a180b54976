"""File trees, harness manifests and tasks: what a user gets wrong is named."""

from __future__ import annotations

import os
import pickle

import pytest

from milo.core.errors import ConfigError, HarnessError, TaskError, UserError
from milo.core.harness import Harness, Manifest, patch_between
from milo.core.task import Splits, Suite, Task
from milo.core.tree import MAX_TREE_BYTES, File, FileTree, checked_path

MANIFEST = 'name = "h"\nentry = "python3 main.py"\n'
TREE = FileTree.of_texts({"harness.toml": MANIFEST, "main.py": "print(1)\n", "lib/a.py": "a\n"})


# --- trees ----------------------------------------------------------------------------------------


def test_trees_are_equal_by_content_and_mode_whatever_the_order():
    one = FileTree.of_texts({"a": "1", "b": "2"})
    assert one == FileTree.of_texts({"b": "2", "a": "1"})
    assert hash(one) == hash(FileTree.of_texts({"b": "2", "a": "1"}))
    assert one != FileTree({"a": File(b"1", True), "b": File(b"2")})
    assert one != {"a": File(b"1"), "b": File(b"2")}
    assert one.digest != FileTree.of_texts({"a": "12", "b": ""}).digest
    assert repr(one).startswith("FileTree(2 files, ")


def test_a_tree_survives_the_disk_with_its_modes(tmp_path):
    tree = FileTree({"bin/run": File(b"#!", True), "a.txt": File(b"x"), "bin/b": File(b"")})
    tree.write_to(tmp_path / "t")
    (tmp_path / "t" / "__pycache__").mkdir()
    (tmp_path / "t" / "__pycache__" / "x.pyc").write_bytes(b"")
    (tmp_path / "t" / ".DS_Store").write_bytes(b"")
    (tmp_path / "t" / "empty").mkdir()
    assert FileTree.from_dir(tmp_path / "t") == tree


def test_links_special_files_and_huge_trees_are_refused(tmp_path):
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(UserError, match="a symbolic link"):
        FileTree.from_dir(tmp_path)
    (tmp_path / "link").unlink()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="a special file"):
        FileTree.from_dir(tmp_path)
    (tmp_path / "pipe").unlink()
    with (tmp_path / "big").open("wb") as big:
        big.truncate(MAX_TREE_BYTES + 1)
    with pytest.raises(UserError, match="at most 64 MiB"):
        FileTree.from_dir(tmp_path)


@pytest.mark.parametrize("path", ["", "/a", "../a", "a/../b", "a//b", "./a", "a\0b"])
def test_a_path_that_leaves_its_tree_is_refused(path):
    with pytest.raises(UserError, match="a normalised relative path"):
        checked_path(path)


def test_edits_make_new_trees():
    tree = FileTree({"run": File(b"1", True)})
    edited = tree.with_texts({"run": "2", "new": "3"})
    assert edited["run"].executable
    assert not edited["new"].executable
    assert tree.text("run") == "1"
    assert edited.without("new").changed_paths(tree) == ("run",)
    assert tree.changed_paths(edited) == ("new", "run")
    assert TREE.under("lib/").text("a.py") == "a\n"
    assert FileTree({"x": File(b"\xff")}).text("x") == "�"


# --- harnesses ------------------------------------------------------------------------------------


def test_a_manifest_may_give_commands_as_text_or_lists():
    manifest = Manifest.parse(
        'name = "h"\nentry = ["sh", "run.sh"]\nsmoke = "python3 \'a b.py\'"\neditable = ["*.py"]',
        "m",
    )
    assert manifest.entry == ("sh", "run.sh")
    assert manifest.smoke == ("python3", "a b.py")
    assert manifest.runtime == "python3"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name = ", "valid TOML"),
        ('nam = "h"', "key 'nam'"),
        ('name = "h"', "key 'entry'"),
        ('entry = "x"', "key 'name'"),
        ('name = " "\nentry = "x"', "key 'name'"),
        ('name = "h"\nentry = 3', "key 'entry'"),
        ('name = "h"\nentry = [1]', "key 'entry'"),
        ('name = "h"\nentry = "\'"', "shell-like"),
        ('name = "h"\nentry = "x"\neditable = []', "key 'editable'"),
        ('name = "h"\nentry = "x"\neditable = [1]', "key 'editable'"),
        ('name = "h"\nentry = "x"\nruntime = 3', "key 'runtime'"),
    ],
)
def test_a_faulty_manifest_is_refused_by_key(text, reason):
    with pytest.raises(HarnessError, match=reason):
        Manifest.parse(text, "harness.toml")


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (TREE.without("harness.toml"), "a file harness.toml"),
        (TREE.without("main.py"), "the file main.py"),
        (TREE.with_texts({"harness.toml": 'name = "h"\nentry = "echo hi"'}), "names a file"),
    ],
)
def test_a_harness_without_manifest_or_entry_point_is_refused(tree, reason):
    with pytest.raises(HarnessError, match=reason):
        Harness.from_tree(tree)


def test_an_entry_outside_the_harness_must_be_absolute():
    tree = TREE.with_texts({"harness.toml": 'name = "h"\nentry = "/bin/echo -n x.y"'})
    with pytest.raises(HarnessError, match=r"x\.y"):
        Harness.from_tree(tree)
    tree = TREE.with_texts({"harness.toml": 'name = "h"\nentry = "/bin/true"'})
    assert Harness.from_tree(tree).manifest.entry == ("/bin/true",)


def test_a_harness_is_read_from_its_directory(tmp_path):
    with pytest.raises(HarnessError, match="no such directory"):
        Harness.from_dir(tmp_path / "none")
    TREE.write_to(tmp_path / "h")
    assert Harness.from_dir(tmp_path / "h").digest == TREE.digest


def test_editable_globs_decide_what_may_change():
    manifest = f'{MANIFEST}editable = ["lib/**/*.py", "*.md"]'
    harness = Harness.from_tree(TREE.with_texts({"harness.toml": manifest}))
    assert harness.may_edit("lib/a.py")
    assert harness.may_edit("lib/deep/b.py")
    assert not harness.may_edit("main.py")
    child = harness.tree.with_texts({"main.py": "2", "lib/a.py": "3"})
    assert harness.forbidden_edits(child) == ("main.py",)
    assert Harness.from_tree(TREE).may_edit("anything/at/all")


def test_a_patch_shows_added_removed_changed_and_binary_files():
    old = FileTree({"a": File(b"1\n2\n"), "b": File(b"x"), "c": File(b"\xff")})
    new = FileTree({"a": File(b"1\n3\n"), "c": File(b"\xfe"), "d": File(b"new\n")})
    patch = patch_between(old, new)
    assert "--- a/a\n+++ b/a\n" in patch
    assert "-2\n+3\n" in patch
    assert "+++ /dev/null\n" in patch
    assert "-x\n\\ No newline at end of file\n" in patch
    assert "Binary files a/c and b/c differ" in patch
    assert "--- /dev/null\n+++ b/d\n" in patch
    assert patch_between(old, old) == ""


# --- tasks and errors -----------------------------------------------------------------------------


def test_a_tasks_digest_covers_what_can_change_an_outcome():
    task = Task(id="t", instruction="do")
    assert task.digest == Task(id="other", instruction="do", family="f").digest
    assert task.digest != Task(id="t", instruction="do!").digest
    assert task.digest != Task(id="t", instruction="do", resolved_at=0.5).digest


def test_splits_are_disjoint_and_not_empty():
    with pytest.raises(TaskError, match="split validation"):
        Splits(search=("a",), validation=())
    with pytest.raises(TaskError, match="search and test"):
        Splits(search=("a",), validation=("b",), test=("a",))
    with pytest.raises(TaskError, match="search and search"):
        Splits(search=("a", "a"), validation=("b",))


def test_a_suite_gives_its_splits_and_refuses_unknown_tasks():
    tasks = {name: Task(id=name, instruction=name) for name in "ab"}
    suite = Suite(name="s", tasks=tasks, splits=Splits(search=("b",), validation=("a",)))
    assert [task.id for task in suite.split("search")] == ["b"]
    with pytest.raises(TaskError, match="split test of suite s"):
        Suite(name="s", tasks=tasks, splits=Splits(search=("a",), validation=("b",), test=("c",)))


def test_user_errors_name_thing_expected_and_found_and_survive_pickling():
    error = pickle.loads(pickle.dumps(ConfigError("key", "this", "that")))
    assert isinstance(error, ConfigError)
    assert (error.thing, error.expected, error.found) == ("key", "this", "that")
    assert str(error) == "key: expected this, found that"


# --- names and texts that are no UTF-8 ------------------------------------------------------------

ODD = os.fsdecode(b"caf\xe9.py")


def test_a_file_name_that_is_no_utf8_is_named(tmp_path):
    """What breaks without it: hashing the tree fails, in words about a codec."""
    (tmp_path / "harness.toml").write_text(MANIFEST)
    (tmp_path / ODD).write_text("x")
    with pytest.raises(UserError, match=r"caf.*: expected a name in UTF-8"):
        Harness.from_dir(tmp_path)
    with pytest.raises(UserError, match="expected a name in UTF-8"):
        FileTree({ODD: File(b"x")})


def test_a_manifest_that_is_no_utf8_is_named_with_the_byte():
    data = MANIFEST.encode() + b'description = "caf\xe9"\n'
    tree = FileTree({**TREE, "harness.toml": File(data)})
    with pytest.raises(HarnessError, match=r"h/harness.toml: expected UTF-8 text, found byte 0xe9"):
        Harness.from_tree(tree, "h")
