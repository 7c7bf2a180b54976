"""A file tree as a value: what harnesses, workspaces and verifiers are made of."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from milo.core.errors import UserError

IGNORED_NAMES = frozenset({".git", "__pycache__", ".DS_Store", ".mypy_cache", ".ruff_cache"})
MAX_TREE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class File:
    """One regular file: its bytes and whether it may be executed."""

    data: bytes
    executable: bool = False


class FileTree(Mapping[str, File]):
    """An immutable mapping from POSIX relative paths to files, hashed by content.

    Two trees are equal if and only if their `digest` is equal: paths, bytes and executable
    bits count, times and owners do not. Symbolic links are refused.
    """

    def __init__(self, files: Mapping[str, File] | None = None) -> None:
        given = files or {}
        self._files: Mapping[str, File] = {checked_path(p): given[p] for p in sorted(given)}

    def __getitem__(self, path: str) -> File:
        return self._files[path]

    def __contains__(self, path: object) -> bool:
        return path in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileTree) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"FileTree({len(self)} files, {self.digest[:12]})"

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over paths, modes and contents in sorted order."""
        total = hashlib.sha256()
        for path, file in self._files.items():
            mode = b"x" if file.executable else b"-"
            header = f"{path}\0{len(file.data)}\0".encode()
            total.update(mode + header + file.data)
        return total.hexdigest()

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> FileTree:
        """Build a tree of non-executable UTF-8 text files."""
        return cls({path: File(text.encode()) for path, text in texts.items()})

    @classmethod
    def from_dir(cls, root: Path) -> FileTree:
        """Read a directory; raises `UserError` on symbolic links, names that are no UTF-8, or more
        than 64 MiB."""
        files: dict[str, File] = {}
        size = 0
        for folder, names, leaves in os.walk(root):
            names[:] = sorted(name for name in names if name not in IGNORED_NAMES)
            for leaf in sorted([*leaves, *names]):
                path = Path(folder) / leaf
                if not is_text(leaf):
                    raise UserError(repr(str(path)), "a name in UTF-8", "other bytes")
                if path.is_symlink():
                    raise UserError(str(path), "a regular file", "a symbolic link")
                if leaf in IGNORED_NAMES or path.is_dir():
                    continue
                if not path.is_file():
                    raise UserError(str(path), "a regular file", "a special file")
                size += path.stat().st_size
                if size > MAX_TREE_BYTES:
                    raise UserError(str(root), "at most 64 MiB of files", "more")
                mode = path.stat().st_mode
                files[path.relative_to(root).as_posix()] = File(
                    path.read_bytes(), bool(mode & 0o100)
                )
        return cls(files)

    def write_to(self, root: Path) -> None:
        """Write every file below `root`, which is created if need be."""
        root.mkdir(parents=True, exist_ok=True)
        made = {root}
        for path, file in self._files.items():
            target = root / path
            if target.parent not in made:
                target.parent.mkdir(parents=True, exist_ok=True)
                made.add(target.parent)
            target.write_bytes(file.data)
            if file.executable:
                target.chmod(0o755)

    def text(self, path: str) -> str:
        """The file as text; undecodable bytes are replaced."""
        return self._files[path].data.decode(errors="replace")

    def with_texts(self, texts: Mapping[str, str]) -> FileTree:
        """A copy in which the given files have the given text; modes are kept."""
        changed = dict(self._files)
        for path, text in texts.items():
            executable = path in changed and changed[path].executable
            changed[path] = File(text.encode(), executable)
        return FileTree(changed)

    def without(self, *paths: str) -> FileTree:
        """A copy that lacks the given paths."""
        return FileTree({path: file for path, file in self._files.items() if path not in paths})

    def under(self, prefix: str) -> FileTree:
        """The files below the folder `prefix`, with paths relative to it."""
        start = prefix.rstrip("/") + "/"
        return FileTree(
            {
                path[len(start) :]: file
                for path, file in self._files.items()
                if path.startswith(start)
            }
        )

    def changed_paths(self, other: FileTree) -> tuple[str, ...]:
        """Paths whose file differs between the two trees, sorted."""
        paths = set(self) | set(other)
        return tuple(sorted(path for path in paths if self.get(path) != other.get(path)))


def checked_path(path: str) -> str:
    """The path itself if it stays inside its tree; raises `UserError` otherwise."""
    pure = PurePosixPath(path)
    if not path or pure.is_absolute() or ".." in pure.parts or "\0" in path or str(pure) != path:
        raise UserError(f"path {path!r}", "a normalised relative path inside the tree", "another")
    if not is_text(path):
        raise UserError(f"path {path!r}", "a name in UTF-8", "other bytes")
    return path


def is_text(name: str) -> bool:
    """Whether a file's name is UTF-8: the system allows any bytes, and Python passes them on."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
