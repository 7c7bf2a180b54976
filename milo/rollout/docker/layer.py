"""A workspace in a container's own file system, for tasks that start in an image.

It is read through the engine while no command runs. Everything in it is hostile: links are never
followed, and every read is bounded in bytes and count. A link out of the workspace is let alone
unless it ends, by whatever ways, where the verifier's files will be: honest tools make many.
"""

from __future__ import annotations

import asyncio
import tarfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from milo.core.errors import HarnessError
from milo.core.tree import MAX_TREE_BYTES, File, FileTree
from milo.rollout.commands import LOGS
from milo.rollout.docker.archive import (
    Kind,
    Stat,
    entries,
    file_at,
    folder_entry,
    is_link,
    layer_bytes,
    packed,
    stat_of,
    volume_folders,
)
from milo.rollout.docker.disk import MEBIBYTE, Binds
from milo.rollout.docker.engine import Engine
from milo.rollout.docker.images import COVERED
from milo.rollout.folder import MAX_FILES, Folder, is_kept, leads_out, use_of

SECRET = (*COVERED, LOGS, "/proc", "/sys", "/dev", "/run/milo")
FEW = 64
"""Paths that are asked for one by one."""
Reader = Callable[[], File | None]
MAX_LINKS = 1000
"""Links out of the workspace that the engine is asked about; the rest counts as traps."""


class LayerDisk:
    """A workspace in the container's own file system. `settle` is called once it is made.

    `named` are files of the image that are read as well, by their paths in the workspace;
    `volumes` are the folders that the image has declared to lie apart from it.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Folder,
        workdir: str,
        storage_mb: int,
        named: frozenset[str] = frozenset(),
        volumes: tuple[str, ...] = (),
    ) -> None:
        self._container = ""
        self._engine = engine
        self._folder = folder
        self._workdir = workdir
        self._limit = storage_mb * MEBIBYTE
        self._named = named
        self._volumes = volumes
        self._apart: tuple[Path, ...] = ()

    async def settle(self, container: str) -> None:
        """Take a container that was made from the image and has not run yet."""
        self._container = container
        api = self._engine.api
        found = await self._engine.ask(stat_of, api, container, self._workdir)
        self._workdir = found.target or self._workdir
        if self._volumes:
            self._apart = await self._engine.ask(volume_folders, api, container)

    def binds(self, mounts: Mapping[str, Path]) -> Binds:
        """The logs, and the mounts."""
        found: Binds = {LOGS: (str(self._folder.logs), True)}
        return found | {place: (str(path), False) for place, path in mounts.items()}

    async def workspace(self) -> FileTree:
        """The files that are named, or not as the image has them: added or changed since."""
        changed = self._inside(await self._diff())
        if not (self._named or changed or self._volumes):
            return FileTree()
        return await self._engine.ask(self._read, changed)

    async def seal(self) -> tuple[str, ...]:
        """Put empty files in the place of links to files that come later, and of special files.

        The engine can replace files of a container that doesn't run, but not remove them.
        """
        diff = await self._diff()
        steps = await self._straighten(diff)
        traps = await self._engine.ask(self._traps, self._inside(diff))
        if traps:
            empty = packed(FileTree(dict.fromkeys(traps, File(b""))))
            await self._engine.ask(
                self._engine.api.put_archive, self._container, self._workdir, empty
            )
        return (*steps, *sorted(traps))

    async def overfull(self) -> bool:
        """Whether the container's layer, its volumes and the logs hold more than may be."""
        said = await self._engine.ask(layer_bytes, self._engine.api, self._container)
        use = await asyncio.to_thread(use_of, self._folder.logs, *self._apart)
        return said + use.size > self._limit or use.entries > MAX_FILES

    async def _straighten(self, diff: frozenset[str]) -> tuple[str, ...]:
        """Make a folder again of a workspace, or a folder above it, that was made a link."""
        links = []
        path, api = PurePosixPath(self._workdir), self._engine.api
        for place in reversed((path, *path.parents[:-1])):
            changed = str(place) in diff
            if changed and await self._engine.ask(is_link, api, self._container, str(place)):
                links.append(str(place))
                entry = folder_entry(place.name)
                await self._engine.ask(api.put_archive, self._container, str(place.parent), entry)
        return tuple(links)

    async def _diff(self) -> frozenset[str]:
        """Absolute paths that are not as the image has them, without what was removed."""
        said = await self._engine.ask(self._engine.api.diff, self._container)
        return frozenset(change["Path"] for change in said or () if change["Kind"] in (0, 1))

    def _inside(self, diff: frozenset[str]) -> frozenset[str]:
        """Paths below the workspace, relative to it."""
        start = self._workdir.rstrip("/") + "/"
        return frozenset(path[len(start) :] for path in diff if path.startswith(start))

    def _lies_apart(self, path: str) -> bool:
        """Whether a path of the workspace lies in a volume, of whose changes nobody tells."""
        whole = self._whole(path)
        return any(whole.startswith(f"{volume.rstrip('/')}/") for volume in self._volumes)

    def _read(self, changed: frozenset[str]) -> FileTree:
        files: dict[str, File] = {}
        left = min(self._limit, MAX_TREE_BYTES)
        for path, size, read in self._found(changed):
            left -= size
            if left < 0 or len(files) > MAX_FILES:
                found = f"at most {self._limit} bytes in {MAX_FILES} files"
                raise HarnessError("the workspace left behind", found, "more")
            file = read()
            if file is not None:
                files[path] = file
        return FileTree(files)

    def _found(self, changed: frozenset[str]) -> Iterator[tuple[str, int, Reader]]:
        """The regular files that are wanted: path, bytes, and how to read it.

        A few are asked for one by one: a workspace may hold a gigabyte of which a line changed.
        """
        api, wanted = self._engine.api, {path for path in changed | self._named if is_kept(path)}
        if len(wanted) <= FEW and not self._volumes:
            for path in sorted(wanted):
                whole = self._whole(path)
                said = stat_of(api, self._container, whole)
                if said.kind is Kind.FILE:
                    yield path, said.size, partial(file_at, api, self._container, whole, said.size)
            return
        for path, entry, stream in entries(api, self._container, self._workdir):
            apart = self._lies_apart(path) and is_kept(path)
            if stream is not None and (path in wanted or apart):
                yield path, entry.size, partial(_file, stream, entry)

    def _traps(self, changed: frozenset[str]) -> list[str]:
        """Links to where secrets will be, and special files, among what changed."""
        api = self._engine.api
        if len(changed) <= FEW and not self._volumes:
            said = {p: stat_of(api, self._container, self._whole(p)) for p in sorted(changed)}
            return [path for path, one in said.items() if _is_trap(one)]
        traps, asked = [], 0
        for path, entry, _ in entries(api, self._container, self._workdir):
            if path not in changed and not self._lies_apart(path):
                continue
            if entry.issym() and leads_out(entry.linkname, path.count("/"), self._workdir):
                asked += 1
                whole = self._whole(path)
                if asked > MAX_LINKS or _is_trap(stat_of(api, self._container, whole)):
                    traps.append(path)
            elif not (entry.issym() or entry.isreg() or entry.isdir() or entry.islnk()):
                traps.append(path)
        return traps

    def _whole(self, path: str) -> str:
        return f"{self._workdir.rstrip('/')}/{path}"


def _file(stream: IO[bytes], entry: tarfile.TarInfo) -> File:
    return File(stream.read(), bool(entry.mode & 0o100))


def _is_trap(said: Stat) -> bool:
    """Whether it is a link that ends where files come later, or what is no file at all."""
    if said.kind is not Kind.LINK:
        return said.kind is Kind.SPECIAL
    return any(f"{said.target}/".startswith(f"{place}/") for place in SECRET) or not said.target
