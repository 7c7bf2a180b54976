"""Files in and out of a container that doesn't run, as the engine packs them."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from milo.core.tree import File, FileTree

LINK = 1 << 27
"""The engine's mode bit of a symbolic link (Go's ``os.ModeSymlink``)."""
FOLDER = 1 << 31
"""The one of a folder."""
SPECIAL = 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19
"""Those of devices, pipes, sockets, and what has no name."""
PATH_STAT = "X-Docker-Container-Path-Stat"
CHUNK = 1 << 20


class Kind(StrEnum):
    """What may stand at a path."""

    NOTHING = "nothing"
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    SPECIAL = "special"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stat:
    """What stands at a path: its bytes, and where a link leads in the end, through all others.

    The engine follows links inside the container only, whatever they say.
    """

    kind: Kind
    size: int = 0
    target: str = ""


class Chunks(io.RawIOBase):
    """A stream of byte chunks as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the next chunk goes; 0 at the end."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = chunk
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def packed(tree: FileTree) -> bytes:
    """A tar of a tree, owned by root."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, file in tree.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(file.data)
            entry.mode = 0o755 if file.executable else 0o644
            tar.addfile(entry, io.BytesIO(file.data))
    return buffer.getvalue()


def folder_entry(name: str) -> bytes:
    """A tar that holds one empty folder that everybody may use."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, 0o777
        tar.addfile(entry)
    return buffer.getvalue()


def entries(
    api: Any, container: str, folder: str
) -> Iterator[tuple[str, tarfile.TarInfo, IO[bytes] | None]]:
    """Everything below a folder: path, entry, and the stream of a regular file.

    Links are not followed. Blocks; raises what the SDK raises.
    """
    with (
        closing(_archive(api, container, folder)) as answer,
        tarfile.open(fileobj=Chunks(answer.iter_content(CHUNK)), mode="r|") as tar,
    ):
        for entry in tar:
            path = entry.name.partition("/")[2]
            if path:
                yield path, entry, tar.extractfile(entry) if entry.isreg() else None


def is_link(api: Any, container: str, path: str) -> bool:
    """Whether a symbolic link stands at the path; blocks."""
    return stat_of(api, container, path).kind is Kind.LINK


def file_at(api: Any, container: str, path: str, limit: int) -> File | None:
    """A regular file of at most so many bytes; None where none stands there. Blocks."""
    said = stat_of(api, container, path)
    if said.kind is not Kind.FILE or said.size > limit:
        return None
    with (
        closing(_archive(api, container, path)) as answer,
        tarfile.open(fileobj=Chunks(answer.iter_content(CHUNK)), mode="r|") as tar,
    ):
        entry = tar.next()
        stream = tar.extractfile(entry) if entry is not None and entry.isreg() else None
        if entry is None or stream is None:
            return None
        return File(stream.read(), bool(entry.mode & 0o100))


def is_there(api: Any, container: str, path: str) -> bool:
    """Whether a folder stands at the path; blocks."""
    return stat_of(api, container, path).kind is Kind.FOLDER


def tree_at(api: Any, container: str, folder: str, limit: int) -> FileTree:
    """The regular files below a folder, as far as they fit into `limit` bytes; blocks."""
    files: dict[str, File] = {}
    left = limit
    for path, entry, stream in entries(api, container, folder):
        if stream is not None and entry.size <= left:
            files[path] = File(stream.read(), bool(entry.mode & 0o100))
            left -= entry.size
    return FileTree(files)


def stat_of(api: Any, container: str, path: str) -> Stat:
    """The engine's word on what stands at a path, the path's last part not followed; blocks."""
    url = api._url("/containers/{0}/archive", container)
    answer = api.head(url, params={"path": path}, timeout=api.timeout)
    if answer.status_code == 404:
        return Stat(kind=Kind.NOTHING)
    api._raise_for_status(answer)
    said: Mapping[str, Any] = json.loads(base64.b64decode(answer.headers[PATH_STAT]))
    bits = said["mode"] & (LINK | FOLDER | SPECIAL)
    kind = {0: Kind.FILE, FOLDER: Kind.FOLDER, LINK: Kind.LINK}.get(bits, Kind.SPECIAL)
    return Stat(kind=kind, size=int(said["size"]), target=str(said.get("linkTarget") or ""))


def layer_bytes(api: Any, container: str) -> int:
    """What the container has written into its own layer; blocks."""
    url = api._url("/containers/{0}/json", container)
    said = api._result(api._get(url, params={"size": 1}), True)
    return int(said.get("SizeRw") or 0)


def volume_folders(api: Any, container: str) -> tuple[Path, ...]:
    """Where a container's volumes lie on this host; blocks."""
    mounts = api.inspect_container(container).get("Mounts") or ()
    return tuple(Path(one["Source"]) for one in mounts if one.get("Type") == "volume")


def _archive(api: Any, container: str, path: str) -> Any:
    url = api._url("/containers/{0}/archive", container)
    answer = api._get(url, params={"path": path}, stream=True)
    api._raise_for_status(answer)
    return answer
