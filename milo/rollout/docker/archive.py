"""Files in and out of a container that doesn't run, as the engine packs them."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import IO, Any

from milo.core.tree import File, FileTree

LINK = 1 << 27
"""The engine's mode bit of a symbolic link (Go's ``os.ModeSymlink``)."""
FOLDER = 1 << 31
"""The one of a folder."""
PATH_STAT = "X-Docker-Container-Path-Stat"
CHUNK = 1 << 20


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
    said = _stat(api, container, path)
    return said is not None and bool(said["mode"] & LINK)


def is_there(api: Any, container: str, path: str) -> bool:
    """Whether a folder stands at the path; blocks."""
    said = _stat(api, container, path)
    return said is not None and bool(said["mode"] & FOLDER)


def tree_at(api: Any, container: str, folder: str, limit: int) -> FileTree:
    """The regular files below a folder, as far as they fit into `limit` bytes; blocks."""
    files: dict[str, File] = {}
    left = limit
    for path, entry, stream in entries(api, container, folder):
        if stream is not None and entry.size <= left:
            files[path] = File(stream.read(), bool(entry.mode & 0o100))
            left -= entry.size
    return FileTree(files)


def _stat(api: Any, container: str, path: str) -> Mapping[str, Any] | None:
    """The engine's word on what stands at a path, links not followed; None for nothing."""
    url = api._url("/containers/{0}/archive", container)
    answer = api.head(url, params={"path": path}, timeout=api.timeout)
    if answer.status_code == 404:
        return None
    api._raise_for_status(answer)
    said: Mapping[str, Any] = json.loads(base64.b64decode(answer.headers[PATH_STAT]))
    return said


def layer_bytes(api: Any, container: str) -> int:
    """What the container has written into its own layer; blocks."""
    url = api._url("/containers/{0}/json", container)
    said = api._result(api._get(url, params={"size": 1}), True)
    return int(said.get("SizeRw") or 0)


def _archive(api: Any, container: str, path: str) -> Any:
    url = api._url("/containers/{0}/archive", container)
    answer = api._get(url, params={"path": path}, stream=True)
    api._raise_for_status(answer)
    return answer
