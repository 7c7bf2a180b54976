"""The harness store: what git shows of a run, and what comes back out of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_builders import harness

from milo.core.errors import DiskFull, HarnessError, RecordError, UserError
from milo.core.tree import File, FileTree
from milo.store.git import Git, ref_part
from milo.store.harnesses import HarnessStore

PLAIN_ENVIRONMENT = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/nonexistent"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return tmp_path / "harnesses.git"


@pytest.fixture
def store(repository: Path) -> Iterator[HarnessStore]:
    store = HarnessStore(repository, writable=True)
    yield store
    store.close()


def git(repository: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(repository), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env=PLAIN_ENVIRONMENT,
    ).stdout


def a_family(store: HarnessStore) -> None:
    store.put("a.0", harness("0"), island="a", message="seed a")
    store.put("b.0", harness("1"), island="b", message="seed b")
    store.put("a.1", harness("2"), island="a", parents=("a.0",), message="better")
    store.put("a.2", harness("3"), island="a", parents=("a.1", "b.0"), message="graft")
    store.put("a.3", harness("4"), island="a", parents=("a.0",), message="from the seed again")


def test_a_harness_comes_back_with_every_byte_and_executable_bit(store: HarnessStore) -> None:
    tree = FileTree(
        {
            **harness().tree,
            "tools/deep/run me.sh": File(b"#!/bin/sh\n", True),
            'odd "name"\\\n': File(b"\0\xff\r\n"),
            "ünï/☃": File(b""),
            "-dash": File(b"x"),
        }
    )
    given_ = type(harness()).from_tree(tree)
    store.put("a.0", given_, island="a")
    assert store.get("a.0") == given_
    assert store.get(given_.digest) == given_
    assert dict(store.tree("a.0")) == dict(tree)


def test_git_log_shows_the_forest_with_a_graft_as_a_merge(
    store: HarnessStore, repository: Path
) -> None:
    a_family(store)
    graph = git(repository, "log", "--graph", "--all", "--format=%s")
    assert all(words in graph for words in ("seed a", "seed b", "better", "graft"))
    parents = git(repository, "log", "-1", "--format=%P", "refs/milo/candidates/a.2").split()
    assert parents == [store.commit("a.1"), store.commit("b.0")]
    assert git(repository, "rev-parse", "a").strip() == store.commit("a.3")
    assert git(repository, "rev-parse", "b").strip() == store.commit("b.0")
    assert store.candidates() == ("a.0", "a.1", "a.2", "a.3", "b.0")
    git(repository, "fsck", "--strict", "--no-dangling")


def test_a_clone_checks_out_the_files_of_an_island(
    store: HarnessStore, repository: Path, tmp_path: Path
) -> None:
    a_family(store)
    git(tmp_path, "clone", "--quiet", str(repository), "copy")
    assert FileTree.from_dir(tmp_path / "copy") == harness("4").tree
    assert os.access(tmp_path / "copy" / "main.py", os.X_OK)


def test_the_same_lineage_has_the_same_commit_ids(
    store: HarnessStore, repository: Path, tmp_path: Path
) -> None:
    a_family(store)
    other = HarnessStore(tmp_path / "other.git", writable=True)
    a_family(other)
    other.close()
    listing = ("for-each-ref", "--format=%(refname) %(objectname)")
    assert git(repository, *listing) == git(tmp_path / "other.git", *listing)


def test_putting_a_candidate_again_changes_nothing(store: HarnessStore, repository: Path) -> None:
    a_family(store)
    before = git(repository, "for-each-ref")
    assert store.put("a.1", harness("2"), island="a", parents=("a.0",)) == store.commit("a.1")
    assert git(repository, "for-each-ref") == before


def test_another_tree_under_a_known_id_is_refused(store: HarnessStore) -> None:
    a_family(store)
    with pytest.raises(RecordError, match=r"candidate a\.1 is stored with harness"):
        store.put("a.1", harness("other"), island="a")


def test_an_unknown_parent_or_name_is_refused(store: HarnessStore) -> None:
    with pytest.raises(RecordError, match=r"no harness a\.9"):
        store.put("a.10", harness(), island="a", parents=("a.9",))
    assert not store.has("a.10")
    assert not store.has("f" * 64)
    with pytest.raises(RecordError, match="no harness nobody"):
        store.get("nobody")


def test_a_commit_whose_content_is_not_what_it_says_is_refused(
    store: HarnessStore, repository: Path
) -> None:
    a_family(store)
    tree = git(repository, "rev-parse", "refs/milo/candidates/a.1^{tree}").strip()
    message = git(repository, "log", "-1", "--format=%B", "refs/milo/candidates/a.0")
    who = {f"GIT_{role}_{part}": "x" for role in ("AUTHOR", "COMMITTER") for part in ("NAME",)}
    forged = subprocess.run(
        ["git", "-C", str(repository), "commit-tree", tree, "-m", message],
        check=True,
        capture_output=True,
        text=True,
        env={
            **PLAIN_ENVIRONMENT,
            **who,
            "GIT_AUTHOR_EMAIL": "x",
            "GIT_COMMITTER_EMAIL": "x",
            "GIT_COMMITTER_DATE": "946684800 +0000",
        },
    ).stdout.strip()
    git(repository, "update-ref", "refs/milo/candidates/a.0", forged)
    with pytest.raises(RecordError, match=r"harness a\.0 has content .* recorded was"):
        store.get("a.0")


def test_the_patch_between_two_candidates_is_a_diff(store: HarnessStore) -> None:
    a_family(store)
    patch = store.patch("a.0", "a.1")
    assert "--- a/main.py" in patch and "-0" in patch and "+2" in patch


def test_what_a_killed_writer_left_locked_does_not_stop_the_next(repository: Path) -> None:
    store = HarnessStore(repository, writable=True)
    store.put("a.0", harness("0"), island="a")
    store.close()
    for name in ("refs/heads/a.lock", "refs/milo/candidates/a.1.lock", "HEAD.lock"):
        (repository / name).write_bytes(b"")
    (repository / "objects" / "pack" / "tmp_pack_x").write_bytes(b"half")
    again = HarnessStore(repository, writable=True)
    assert not list(repository.rglob("tmp_*"))
    again.put("a.1", harness("1"), island="a", parents=("a.0",))
    again.close()
    assert git(repository, "rev-parse", "a").strip()


def test_an_import_that_breaks_off_leaves_no_candidate(store: HarnessStore) -> None:
    with pytest.raises(RecordError, match="fast-import failed"):
        store._git.fast_import(b"commit refs/heads/a\ncommitter x <x> 0 +0000\ndata 3\nabc")
    assert store.candidates() == ()
    store.put("a.0", harness(), island="a")
    assert store.has("a.0")


def test_the_users_own_git_configuration_has_no_say(
    store: HarnessStore, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[commit]\n gpgsign = true\n[user]\n name = Somebody\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    store.put("a.0", harness(), island="a")
    assert git(repository, "log", "-1", "--format=%an %cn", "a").strip() == "MILO MILO"


def test_trees_that_git_cannot_hold_are_refused(store: HarnessStore) -> None:
    for bad in ({".git/config": File(b"")}, {"x": File(b""), "x/y": File(b"")}):
        broken = type(harness()).from_tree(FileTree({**harness().tree, **bad}))
        with pytest.raises(HarnessError, match=r"candidate a\.0"):
            store.put("a.0", broken, island="a")


def test_a_reader_sees_new_candidates_and_may_not_put(
    store: HarnessStore, repository: Path
) -> None:
    reader = HarnessStore(repository)
    assert not reader.has("a.0")
    a_family(store)
    assert reader.get("a.0") == harness("0")
    assert reader.get(harness("2").digest) == harness("2")
    store.put("a.4", harness("5"), island="a", parents=("a.0",))
    assert reader.has(harness("5").digest)
    with pytest.raises(RecordError, match="reading only"):
        reader.put("a.5", harness(), island="a")
    reader.close()
    reader.close()


def test_words_of_a_mutator_cannot_forge_the_digest(store: HarnessStore) -> None:
    words = f"title\n\nMilo-Harness: {'0' * 64}\0 and \ud83d"
    store.put("a.0", harness(), island="a", message=words)
    assert store.get("a.0") == harness()


def test_a_reading_process_that_was_killed_is_said_once_and_replaced(store: HarnessStore) -> None:
    store.put("a.0", harness(), island="a")
    reader = store._git._reader
    assert reader is not None
    reader.kill()
    reader.wait()
    with pytest.raises(RecordError, match="the process ended"):
        store.get("a.0")
    assert store.get("a.0") == harness()


@pytest.mark.parametrize("words", ["No space left on device", "Disk quota exceeded"])
def test_a_full_disk_under_git_is_a_full_disk(words: str, tmp_path: Path) -> None:
    """And the lock that git leaves then does not keep the next one from writing."""
    fake, lock = tmp_path / "git", tmp_path / "harnesses.git" / "packed-refs.lock"
    fake.write_text(f"#!/bin/sh\necho 'fatal: write error: {words}' >&2; exit 128\n")
    fake.chmod(0o755)
    lock.parent.mkdir()
    lock.touch()
    with pytest.raises(DiskFull, match=r"harnesses\.git: no space left"):
        Git(tmp_path / "harnesses.git", command=str(fake)).fast_import(b"")
    assert not lock.exists()


def test_a_machine_without_git_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="git: expected the git command"):
        Git(tmp_path, command="git-that-is-not-there")


@settings(max_examples=40)
@given(st.lists(st.text(min_size=1, max_size=6), min_size=2, max_size=2, unique=True))
def test_different_names_are_different_refs(names: list[str]) -> None:
    try:
        parts = [ref_part(name) for name in names]
    except UnicodeEncodeError:
        return
    assert parts[0] != parts[1]


@pytest.mark.parametrize(
    "name", ["a.lock", ".a", "a.", "a..b", "-a", "a b", "a/b", "a~^:?*[\\", "@{x}", "é", "@"]
)
def test_any_name_becomes_a_valid_ref(name: str, tmp_path: Path) -> None:
    git(tmp_path, "check-ref-format", f"refs/heads/{ref_part(name)}")


def test_a_candidate_that_never_made_it_into_the_journal_may_be_replaced(
    store: HarnessStore,
) -> None:
    """A model-driven mutator makes another child after a kill between commit and record."""
    first, second = harness("a"), harness("b")
    store.put("i1.0", first, island="i1")
    with pytest.raises(RecordError):
        store.put("i1.0", second, island="i1")
    store.put("i1.0", second, island="i1", replace=True)
    assert store.get("i1.0").digest == second.digest
