"""A workspace in a container's own file system, for tasks that start in an image.

It is read through the engine while no command runs. Everything in it is hostile: links are never
followed, and every read is bounded in bytes and count.
"""

from __future__ import annotations

import asyncio
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from milo.core.errors import HarnessError
from milo.core.tree import IGNORED_NAMES, MAX_TREE_BYTES, File, FileTree
from milo.rollout.commands import LOGS
from milo.rollout.docker.archive import entries, folder_entry, is_link, layer_bytes, packed
from milo.rollout.docker.disk import MEBIBYTE, Binds
from milo.rollout.docker.engine import Engine
from milo.rollout.folder import MAX_FILES, Folder, leads_out


class LayerDisk:
    """A workspace in the container's own file system. `container` is set once it is made.

    `named` are files of the image that are read as well, by their paths in the workspace.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Folder,
        workdir: str,
        storage_mb: int,
        named: frozenset[str] = frozenset(),
    ) -> None:
        self.container = ""
        self._engine = engine
        self._folder = folder
        self._workdir = workdir
        self._limit = storage_mb * MEBIBYTE
        self._named = named

    def binds(self, mounts: Mapping[str, Path]) -> Binds:
        """The logs, and the mounts."""
        found: Binds = {LOGS: (str(self._folder.logs), True)}
        return found | {place: (str(path), False) for place, path in mounts.items()}

    async def workspace(self) -> FileTree:
        """The files that are named, or not as the image has them: added or changed since."""
        wanted = self._named | await self._changed()
        return await self._engine.ask(self._read, wanted) if wanted else FileTree()

    async def seal(self) -> tuple[str, ...]:
        """Put empty files in the place of links that lead out, and of special files.

        The engine can replace files of a container that doesn't run, but not remove them.
        """
        steps = await self._straighten()
        changed = await self._changed()
        traps = await self._engine.ask(self._traps, changed) if changed else []
        if traps:
            empty = packed(FileTree(dict.fromkeys(traps, File(b""))))
            await self._engine.ask(
                self._engine.api.put_archive, self.container, self._workdir, empty
            )
        return (*steps, *sorted(traps))

    async def overfull(self) -> bool:
        """Whether the container's own layer and the logs hold more than may be."""
        said = await self._engine.ask(layer_bytes, self._engine.api, self.container)
        use = await asyncio.to_thread(self._folder.use)
        return said + use.size > self._limit or use.entries > MAX_FILES

    async def _straighten(self) -> tuple[str, ...]:
        """Make a folder again of a workspace, or a folder above it, that became a link."""
        links = []
        path = PurePosixPath(self._workdir)
        for place in reversed((path, *path.parents[:-1])):
            if await self._engine.ask(is_link, self._engine.api, self.container, str(place)):
                links.append(str(place))
                await self._engine.ask(
                    self._engine.api.put_archive,
                    self.container,
                    str(place.parent),
                    folder_entry(place.name),
                )
        return tuple(links)

    async def _changed(self) -> frozenset[str]:
        """Paths below the workspace, relative to it, that differ from the image."""
        said = await self._engine.ask(self._engine.api.diff, self.container)
        start = self._workdir.rstrip("/") + "/"
        paths = (change["Path"] for change in said or () if change["Kind"] in (0, 1))
        return frozenset(path[len(start) :] for path in paths if path.startswith(start))

    def _read(self, wanted: frozenset[str]) -> FileTree:
        files: dict[str, File] = {}
        size, limit = 0, min(self._limit, MAX_TREE_BYTES)
        for path, entry, stream in entries(self._engine.api, self.container, self._workdir):
            if path not in wanted or not entry.isreg() or not _is_kept(path):
                continue
            size += entry.size
            if size > limit or len(files) > MAX_FILES:
                found = f"at most {limit} bytes in {MAX_FILES} files"
                raise HarnessError("the workspace left behind", found, "more")
            data = stream.read() if stream is not None else b""
            files[path] = File(data, bool(entry.mode & 0o100))
        return FileTree(files)

    def _traps(self, changed: frozenset[str]) -> list[str]:
        return [
            path
            for path, entry, _ in entries(self._engine.api, self.container, self._workdir)
            if path in changed and _is_trap(entry, path, self._workdir)
        ]


def _is_trap(entry: tarfile.TarInfo, path: str, workdir: str) -> bool:
    """Whether it is neither file nor folder, nor a link that stays inside or in the system."""
    if entry.issym():
        return leads_out(entry.linkname, path.count("/"), workdir)
    return not (entry.isreg() or entry.isdir() or entry.islnk())


def _is_kept(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return IGNORED_NAMES.isdisjoint(path.split("/"))
