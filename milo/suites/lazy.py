"""A folder as a file tree that is read when somebody looks into it, not before.

A suite may hold thousands of tasks of which a run takes a few dozen. Names, kinds and sizes are
checked at once, so that a folder that can't be used is refused when it is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from milo.core.errors import TaskError
from milo.core.tree import IGNORED_NAMES, MAX_TREE_BYTES, File, FileTree, is_text


class FolderTree(FileTree):
    """The files below a folder as they are when first looked at; copies travel with the content.

    Names at its top that are `hidden` are not part of it. Raises `TaskError` for links, special
    files and more than 64 MiB.
    """

    def __init__(self, root: Path, hidden: frozenset[str] = frozenset()) -> None:
        self._files = _Files(root, hidden)

    def __reduce__(self) -> tuple[type[FileTree], tuple[dict[str, File]]]:
        """Other processes may be on machines without the folder."""
        return (FileTree, (dict(self._files),))


class _Files(Mapping[str, File]):
    """Paths known at once, content read on first use and kept."""

    def __init__(self, root: Path, hidden: frozenset[str]) -> None:
        self._root = root
        self._paths = _listing(root, hidden)

    def __getitem__(self, path: str) -> File:
        if path not in self._paths:
            raise KeyError(path)
        return self._content[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    @cached_property
    def _content(self) -> dict[str, File]:
        tree = FileTree.from_dir(self._root)
        if not self._paths.keys() <= tree.keys():
            raise TaskError(str(self._root), "the files that it held when it was listed", "fewer")
        return {path: tree[path] for path in self._paths}


def _listing(root: Path, hidden: frozenset[str]) -> dict[str, None]:
    """The relative paths of the regular files below `root`, sorted, as keys.

    A folder that is not there holds nothing.
    """
    if root.is_symlink() or (root.exists() and not root.is_dir()):
        found = "a symbolic link" if root.is_symlink() else "a file"
        raise TaskError(str(root), "a folder", found)
    paths: list[str] = []
    size = 0
    stack = [str(root)] if root.is_dir() else []
    start = len(str(root)) + 1
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.path[start:] in hidden:
                    continue
                if entry.is_symlink():
                    raise TaskError(entry.path, "a regular file", "a symbolic link")
                if entry.name in IGNORED_NAMES:
                    continue
                if entry.is_dir():
                    stack.append(entry.path)
                    continue
                if not entry.is_file():
                    raise TaskError(entry.path, "a regular file", "a special file")
                size += entry.stat().st_size
                if not is_text(entry.name):
                    raise TaskError(repr(entry.path), "a name in UTF-8", "other bytes")
                paths.append(entry.path[start:])
    if size > MAX_TREE_BYTES:
        raise TaskError(str(root), f"at most {MAX_TREE_BYTES >> 20} MiB of files", f"{size} bytes")
    return dict.fromkeys(sorted(paths))


def read_text(path: Path, task: Path) -> str:
    """A file of a task as UTF-8 text; raises `TaskError` where it is missing or no text."""
    if path.is_symlink():
        raise TaskError(str(path), "a regular file", "a symbolic link")
    if not path.is_file():
        raise TaskError(f"task {task}", f"a file {path.relative_to(task)}", "none")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TaskError(str(path), "UTF-8 text", str(error)) from error


def folder_tree(task: Path, name: str) -> FileTree:
    """A folder of a task, empty where there is none; raises `TaskError` as `FolderTree` says."""
    return FolderTree(task / name)
