"""The harness store: a git repository in which a run can be read with git's own commands.

A candidate is a commit whose parents are its parents, so a graft is a merge. Author, committer
and date follow from the lineage alone: the same lineage has the same commit ids. The content
digest stands in the commit message and is checked whenever a harness is read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from milo.core.errors import HarnessError, RecordError
from milo.core.harness import Harness, patch_between
from milo.core.tree import File, FileTree
from milo.store.git import Git, quoted, ref_part, tree_entries

WHO = b"MILO <milo@localhost>"
FIRST_DATE = 946_684_800
STEP_S = 60
"""Seeds are dated 2000-01-01, and a child a minute after its latest parent."""

CANDIDATES = "refs/milo/candidates/"
_EXECUTABLE, _FOLDER = "100755", "40000"
_DATE = re.compile(rb"^committer .* (\d+) \+0000$", re.MULTILINE)
_TREE = re.compile(rb"\Atree ([0-9a-f]{40})$", re.MULTILINE)
_DIGEST = re.compile(rb"^Milo-Harness: ([0-9a-f]{64})$", re.MULTILINE)


class Commit(NamedTuple):
    """A candidate's commit: ids of itself and its tree, the harness digest, seconds since 1970."""

    id: str
    tree: str
    digest: str
    date: int


class HarnessStore:
    """Harnesses by candidate id or content digest. One owner puts, anyone reads."""

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        """Open the repository; `writable` makes it where need be and clears a dead writer's locks.

        The caller of a writable one holds the run's lock.
        """
        self._git = Git(path)
        self._writable = writable
        self._by_digest: dict[str, str] | None = None
        if writable:
            self._git.init()

    def put(
        self,
        candidate: str,
        harness: Harness,
        *,
        island: str,
        parents: tuple[str, ...] = (),
        message: str = "",
        replace: bool = False,
    ) -> str:
        """Commit a candidate on its island's branch; the commit id. Harmless when repeated.

        `replace` lets another tree take the place of one that was committed but never made it
        into the journal, since the writer was killed between the two. Raises `RecordError` for an
        unknown parent or another tree under a known id, `HarnessError` for a tree that git can't
        hold.
        """
        if not self._writable:
            raise RecordError("these harnesses were opened for reading only")
        known = self._commit(candidate)
        if known is not None:
            if known.digest == harness.digest:
                self._git.harden(_ref(candidate))  # a full disk may have kept it from that
                return known.id
            if not replace:
                raise RecordError(
                    f"candidate {candidate} is stored with harness {known.digest[:12]}, "
                    f"not {harness.digest[:12]}"
                )
        _check_storable(harness.tree, candidate)
        above = [self._known(parent) for parent in parents]
        text = _message(candidate, harness.digest, island, message)
        branch = f"refs/heads/{ref_part(island)}"
        stream = _stream(_ref(candidate), branch, harness.tree, above, text)
        commit = self._git.fast_import(stream).strip()
        self._git.harden(_ref(candidate))
        if self._by_digest is not None:
            self._by_digest.setdefault(harness.digest, commit)
        if self._git.read("HEAD") is None:
            self._git.point_head(branch)
        return commit

    def get(self, name: str) -> Harness:
        """A harness by candidate id or content digest.

        Raises `RecordError` where it is unknown, or where its content is not what was recorded.
        """
        return Harness.from_tree(self.tree(name), name)

    def tree(self, name: str) -> FileTree:
        """The files of a candidate, or of a content digest; raises `RecordError`."""
        commit = self._known(name)
        files: dict[str, File] = {}
        self._collect(commit.tree, "", files)
        tree = FileTree(files)
        if tree.digest != commit.digest:
            raise RecordError(
                f"{self._git.path}: harness {name} has content {tree.digest[:12]}, "
                f"recorded was {commit.digest[:12]}"
            )
        return tree

    def has(self, name: str) -> bool:
        """Whether a candidate id or content digest is stored."""
        return self._find(name) is not None

    def commit(self, name: str) -> str:
        """The commit id of a candidate or content digest; raises `RecordError`."""
        return self._known(name).id

    def patch(self, parent: str, child: str) -> str:
        """A unified diff between two stored harnesses."""
        return patch_between(self.tree(parent), self.tree(child))

    def candidates(self) -> tuple[str, ...]:
        """Ref names of all candidates (`ref_part` of their ids), sorted."""
        refs = self._git.refs(CANDIDATES, "%(refname)")
        return tuple(ref.removeprefix(CANDIDATES) for ref in refs)

    def close(self) -> None:
        """End git's reading process; safe to call twice."""
        self._git.close()

    def _known(self, name: str) -> Commit:
        commit = self._find(name)
        if commit is None:
            raise RecordError(f"{self._git.path}: there is no harness {name}")
        return commit

    def _find(self, name: str) -> Commit | None:
        return self._commit(name) or self._commit_of_digest(name)

    def _commit(self, candidate: str) -> Commit | None:
        return self._read_commit(_ref(candidate))

    def _commit_of_digest(self, digest: str) -> Commit | None:
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            return None
        if self._by_digest is None or (digest not in self._by_digest and not self._writable):
            form = "%(contents:trailers:key=Milo-Harness,valueonly,separator=) %(objectname)"
            rows = (row.split() for row in reversed(self._git.refs(CANDIDATES, form)))
            self._by_digest = {row[0]: row[1] for row in rows if len(row) == 2}
        commit = self._by_digest.get(digest)
        return self._read_commit(commit) if commit else None

    def _read_commit(self, name: str) -> Commit | None:
        found = self._git.read(name)
        if found is None:
            return None
        tree, date = _TREE.search(found.data), _DATE.search(found.data)
        digests = _DIGEST.findall(found.data)
        if tree is None or date is None or not digests:
            raise RecordError(f"{self._git.path}: {name} is no candidate's commit")
        return Commit(found.id, tree[1].decode(), digests[-1].decode(), int(date[1]))

    def _collect(self, tree: str, prefix: str, files: dict[str, File]) -> None:
        for entry in tree_entries(self._data(tree)):
            if entry.mode == _FOLDER:
                self._collect(entry.id, f"{prefix}{entry.name}/", files)
            else:
                files[prefix + entry.name] = File(self._data(entry.id), entry.mode == _EXECUTABLE)

    def _data(self, object_id: str) -> bytes:
        found = self._git.read(object_id)
        if found is None:
            raise RecordError(f"{self._git.path}: object {object_id} is missing")
        return found.data


def _ref(candidate: str) -> str:
    return CANDIDATES + ref_part(candidate)


def _message(candidate: str, digest: str, island: str, message: str) -> bytes:
    title = message.strip() or candidate
    trailers = f"Milo-Candidate: {ref_part(candidate)}\nMilo-Island: {ref_part(island)}"
    text = f"{title}\n\n{trailers}\nMilo-Harness: {digest}\n"
    return text.replace("\0", "").encode(errors="replace")


def _stream(ref: str, branch: str, tree: FileTree, above: list[Commit], text: bytes) -> bytes:
    """A `fast-import` stream: the commit on its branch, then the candidate's own ref."""
    date = max((commit.date + STEP_S for commit in above), default=FIRST_DATE)
    who = b"%b %d +0000\n" % (WHO, date)
    links = [
        b"%b %b\n" % (b"merge" if nth else b"from", commit.id.encode())
        for nth, commit in enumerate(above)
    ]
    # `reset` first: without it a seed's commit would continue what is on the branch.
    head = b"reset %b\ncommit %b\nmark :1\n" % (branch.encode(), branch.encode())
    return b"".join(
        (
            head,
            b"author " + who,
            b"committer " + who,
            _data(text),
            *links,
            b"deleteall\n",
            *(_file(path, file) for path, file in tree.items()),
            b"\nreset %b\nfrom :1\n\nget-mark :1\ndone\n" % ref.encode(),
        )
    )


def _file(path: str, file: File) -> bytes:
    mode = b"100755" if file.executable else b"100644"
    return b"M %b inline %b\n" % (mode, quoted(path)) + _data(file.data)


def _data(data: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(data), data)


def _check_storable(tree: FileTree, candidate: str) -> None:
    for path in tree:
        parts = path.split("/")
        if any(part.lower() == ".git" for part in parts):
            raise HarnessError(f"candidate {candidate}", "no file named .git", path)
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        clash = next((folder for folder in above if folder in tree), None)
        if clash is not None:
            raise HarnessError(
                f"candidate {candidate}", "each path a file or a folder", f"{clash} as both"
            )
