"""Where a workspace lies: in a folder of the host that the container sees, or in the container.

A task without an image has its workspace in a host folder, as in the local sandboxes; one with an
image works where the image put things (`layer.LayerDisk`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from milo.core.tree import FileTree
from milo.rollout.commands import LOGS, TESTS
from milo.rollout.folder import MAX_FILES, Folder

MEBIBYTE = 1024 * 1024
Binds = dict[str, tuple[str, bool]]


class Disk(Protocol):
    """The workspace of one environment. One owner; not while a command runs."""

    def binds(self, mounts: Mapping[str, Path]) -> Binds:
        """What the container must see, by place: the host's path, and whether it may be written.
        `mounts` are the read-only trees shown so far."""
        ...

    async def workspace(self) -> FileTree:
        """The files; raises `HarnessError` where they are too many or too large."""
        ...

    async def seal(self) -> tuple[str, ...]:
        """Disarm special files and links that lead out; their paths."""
        ...

    async def overfull(self) -> bool:
        """Whether more is stored than may be; also while a command runs."""
        ...


class HostDisk:
    """A workspace in a folder of the host."""

    def __init__(self, folder: Folder, workdir: str, storage_mb: int) -> None:
        self._folder = folder
        self._workdir = workdir
        self._limit = storage_mb * MEBIBYTE

    def binds(self, mounts: Mapping[str, Path]) -> Binds:
        """Workspace and logs; /tests leads into the logs until it is mounted."""
        found: Binds = {
            self._workdir: (str(self._folder.workspace), True),
            LOGS: (str(self._folder.logs), True),
            TESTS: (str(self._folder.logs / "tests"), True),
        }
        return found | {place: (str(path), False) for place, path in mounts.items()}

    async def workspace(self) -> FileTree:
        """The workspace's regular files."""
        return await asyncio.to_thread(self._folder.read_workspace, self._limit)

    async def seal(self) -> tuple[str, ...]:
        """Remove links that lead out of the workspace, and special files."""
        return await asyncio.to_thread(self._folder.seal)

    async def overfull(self) -> bool:
        """Whether workspace and logs hold more bytes or entries than may be."""
        use = await asyncio.to_thread(self._folder.use)
        return use.size > self._limit or use.entries > MAX_FILES
