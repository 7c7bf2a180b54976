"""The host's side of one local environment: its workspace and its logs.

Whatever a command left there is hostile: links are never followed, special files never opened,
and every walk is bounded in bytes and count.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from milo.core.errors import HarnessError
from milo.core.task import WORKSPACE
from milo.core.tree import IGNORED_NAMES, MAX_TREE_BYTES, File, FileTree, is_text
from milo.rollout.scratch import make_folder, remove_folder

MAX_FILES = 20_000
MAX_LOG_BYTES = 4 * 1024 * 1024
LOG_FOLDERS = ("agent", "verifier", "artifacts", "tests")
"""`tests` is what /tests shows until the verifier's files are mounted: a write leaves a trace."""
READ_FIRST = ("verifier", "tests")
SYSTEM_PREFIXES = ("/usr/", "/bin/", "/lib/", "/lib64/", "/etc/")


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderUse:
    """What a folder holds: bytes of regular files and number of entries."""

    size: int
    entries: int


class Folder:
    """Workspace and logs of one environment below one scratch folder. One owner.

    `uid` is the user that commands run as, where it is not ours.
    """

    def __init__(self, root: Path, owner: str, workspace: FileTree, uid: int | None) -> None:
        self.base = make_folder(root, owner, shared=uid is not None)
        self.workspace = self.base / "workspace"
        self.logs = self.base / "logs"
        self._uid = uid
        self.workspace.mkdir(0o700)
        workspace.write_to(self.workspace)
        self._give(self.workspace, deep=len(workspace) > 0)
        self._make_logs()

    def read_workspace(self, limit: int) -> FileTree:
        """The regular files; raises `HarnessError` where they are too many or too large."""
        return _read_tree(self.workspace, min(limit, MAX_TREE_BYTES), strict=True)

    def read_logs(self) -> FileTree:
        """The regular files below the logs, as far as they fit into 4 MiB.

        What only a verifier writes is read first: nothing else may take its place.
        """
        return _read_tree(self.logs, MAX_LOG_BYTES, strict=False, first=READ_FIRST)

    def clear_logs(self) -> None:
        """Empty the logs; whatever stands in their place is replaced."""
        if self.logs.is_symlink() or not self.logs.is_dir():
            self.logs.unlink(missing_ok=True)
        else:
            remove_folder(self.logs)
        if self.logs.is_dir():
            # A container's root made folders in it, which others can't empty: out of sight.
            self.logs.rename(tempfile.mkdtemp(prefix="left-", dir=self.base))
        self._make_logs()

    def seal(self, workdir: str = WORKSPACE) -> tuple[str, ...]:
        """Remove special files and links that lead out of the workspace; their paths, sorted.

        Links to the read-only system stay. What holds a path too long to be looked at goes as a
        whole, from the workspace's own entry down. Commands see the workspace as `workdir`.
        """
        removed = []
        for entry, depth in _walk(self.workspace, unlock=True):
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except OSError:  # too deep for any path of ours: what it stands in goes as a whole
                top = os.path.relpath(entry.path, self.workspace).split("/", 1)[0]
                remove_folder(self.workspace / top)
                removed.append(top)
                continue
            special = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
            if special or (
                stat.S_ISLNK(mode) and leads_out(os.readlink(entry.path), depth, workdir)
            ):
                _unlink(entry.path)
                removed.append(os.path.relpath(entry.path, self.workspace))
        return tuple(sorted(set(removed)))

    def unlock(self) -> None:
        """Let commands into the workspace again, whatever an earlier one made of its mode."""
        mode = self.workspace.stat().st_mode
        if mode & 0o700 != 0o700:
            self.workspace.chmod(mode | 0o700)

    def use(self) -> FolderUse:
        """What workspace and logs hold now, counted no further than the largest count."""
        return use_of(self.workspace, self.logs)

    def close(self) -> None:
        """Remove everything; safe to call twice."""
        remove_folder(self.base)

    def _make_logs(self) -> None:
        self.logs.mkdir(0o755)
        for name in LOG_FOLDERS:
            (self.logs / name).mkdir(0o755)
        self._give(self.logs, deep=True)

    def _give(self, path: Path, *, deep: bool) -> None:
        if self._uid is None:
            return
        os.chown(path, self._uid, self._uid)
        if deep:
            for entry, _ in _walk(path):
                os.chown(entry.path, self._uid, self._uid, follow_symlinks=False)


def use_of(*roots: Path) -> FolderUse:
    """What some folders hold now, counted no further than the largest count."""
    size = entries = 0
    for root in roots:
        for entry, _ in _walk(root):
            entries += 1
            try:
                size += entry.stat(follow_symlinks=False).st_size
            except OSError:
                continue
            if entries > MAX_FILES:
                return FolderUse(size=size, entries=entries)
    return FolderUse(size=size, entries=entries)


def leads_out(target: str, depth: int, workdir: str = WORKSPACE) -> bool:
    """Whether a link `depth` folders below the workspace may lead out of it.

    Only leading ``..`` are counted: they are exact, since the link's own folder is real. A later
    ``..`` may climb from wherever another link led, so it is refused.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    climbs = 0
    while climbs < len(parts) and parts[climbs] == "..":
        climbs += 1
    if ".." in parts[climbs:]:
        return True
    if target.startswith("/"):
        inside = f"{target}/".startswith(workdir.rstrip("/") + "/")
        return climbs > 0 or not (inside or target.startswith(SYSTEM_PREFIXES))
    return climbs > depth


def _walk(root: Path, *, unlock: bool = False) -> Iterator[tuple[os.DirEntry[str], int]]:
    """Every entry below `root` with its depth.

    Folders that can't be listed are passed over, or opened first with `unlock`: a command of an
    ordinary user can shut a folder against us, and still reach what is in it by name.
    """
    stack = [(str(root), 0)]
    while stack:
        folder, depth = stack.pop()
        for entry in _entries(folder, unlock=unlock):
            if entry.is_dir(follow_symlinks=False):
                stack.append((entry.path, depth + 1))
            yield entry, depth


def _entries(folder: str, *, unlock: bool) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except PermissionError:
        if not unlock:
            return []
    except OSError:
        return []
    os.chmod(folder, 0o700)
    return _entries(folder, unlock=False)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except PermissionError:
        os.chmod(os.path.dirname(path), 0o700)
        os.unlink(path)


def _read_tree(root: Path, limit: int, *, strict: bool, first: tuple[str, ...] = ()) -> FileTree:
    """The files, those below `first` before others, as many as fit; or (`strict`) all of them."""
    files: dict[str, File] = {}
    size = 0
    start = len(str(root)) + 1
    for count, entry in enumerate(_in_order(root, first)):
        path = entry.path[start:]
        more = _size_of(entry)
        if more is None or not is_kept(path):
            continue
        if size + more > limit or count > MAX_FILES:
            if strict:
                limits = f"at most {limit} bytes in {MAX_FILES} files"
                raise HarnessError("the workspace left behind", limits, "more")
            continue
        size += more
        file = _read_file(entry.path, limit)
        if file is not None:
            files[path] = file
    return FileTree(files)


def _size_of(entry: os.DirEntry[str]) -> int | None:
    """The bytes of a regular file; None for all else, and where its path is too long to be told."""
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _in_order(root: Path, first: tuple[str, ...]) -> Iterator[os.DirEntry[str]]:
    """Every entry below `root`, those of some of its folders before all others."""
    for name in first:
        if not (root / name).is_symlink():
            yield from (entry for entry, _ in _walk(root / name))
    start = len(str(root)) + 1
    for entry, _ in _walk(root):
        if entry.path[start:].split("/", 1)[0] not in first:
            yield entry


def is_kept(path: str) -> bool:
    """Whether a file of this path can stand in a tree, and is not left out of every one."""
    return is_text(path) and IGNORED_NAMES.isdisjoint(path.split("/"))


def _read_file(path: str, limit: int) -> File | None:
    """The file's bytes; None where it can't be read or is no regular file any more."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb") as stream:
        mode = os.fstat(fd).st_mode
        data = stream.read(limit + 1) if stat.S_ISREG(mode) else b""
    return File(data, bool(mode & 0o100)) if stat.S_ISREG(mode) else None
