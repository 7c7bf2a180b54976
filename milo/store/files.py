"""Durable files: appends that can be taken back, and replacements that happen at once or not."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from milo.core.errors import DiskFull, MiloError, RecordError

OUT_OF_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
MARGIN_BYTES = 32 * 1024 * 1024
"""What a run leaves free for the records that can't wait."""


def free_bytes(path: Path) -> int:
    """Bytes that may still be written to the file system that holds `path`."""
    return shutil.disk_usage(path).free


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    """The system calls that a full or failing disk makes fail; tests pass failing ones."""

    write: Callable[[int, bytes], int] = os.write
    sync: Callable[[int], None] = os.fdatasync
    free: Callable[[Path], int] = free_bytes


def shortage_of(path: Path, disk: Disk) -> str:
    """What the disk of a folder lacks for the next records, in words; "" where it lacks nothing,
    or where that can't be told."""
    try:
        free = disk.free(path)
    except OSError:
        return ""
    if free >= MARGIN_BYTES:
        return ""
    need, has = MARGIN_BYTES / 1024**2, free / 1024**2
    return f"{path}: the disk is full ({need:.0f} MiB must be free, {has:.1f} MiB are)"


def write_failed(path: Path, error: OSError) -> MiloError:
    """The error to raise for a write that the system refused."""
    if error.errno in OUT_OF_SPACE:
        return DiskFull(f"{path}: no space left on the disk")
    return RecordError(f"{path}: can't be written: {error.strerror or error}")


def write_all(descriptor: int, data: bytes, disk: Disk) -> None:
    """Write every byte, however many calls it takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[disk.write(descriptor, bytes(rest) if len(rest) < len(data) else data) :]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomic(path: Path, data: bytes, disk: Disk, *, durable: bool = True) -> None:
    """Replace or make a file: readers see the old one or the whole new one, also after a crash.

    A crash of the process; with `durable` also one of the machine. Raises `DiskFull` or
    `RecordError`; the old file then stands.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            write_all(descriptor, data, disk)
            if durable:
                disk.sync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise write_failed(path, error) from error


class AppendFile:
    """A file that only grows, by whole appends. One owner."""

    def __init__(self, path: Path, disk: Disk, *, keep: int | None = None) -> None:
        """Open for writing; bytes beyond `keep` are cut off first."""
        self.path = path
        self._disk = disk
        self._broken = False
        self._flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, self._flags, 0o644)
        if keep is not None and keep < self.size:
            self.cut(keep)

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._descriptor).st_size

    def append(self, data: bytes, *, durable: bool = True) -> None:
        """Add all bytes durably, or none: a failed write is taken back before this raises.

        Without `durable` they survive a crash of the process, not one of the machine. Raises
        `DiskFull` where there is no room, `RecordError` for any other refusal.
        """
        if self._broken:
            raise RecordError(f"{self.path}: an earlier write could not be taken back")
        start = self.size
        try:
            write_all(self._descriptor, data, self._disk)
            if durable:
                self._disk.sync(self._descriptor)
        except OSError as error:
            self._take_back(start)
            raise write_failed(self.path, error) from error
        except BaseException:
            self._take_back(start)
            raise

    def cut(self, size: int) -> None:
        """Cut the file back to its first `size` bytes, durably."""
        os.ftruncate(self._descriptor, size)
        os.fdatasync(self._descriptor)

    def renew(self) -> None:
        """Put an empty file in its place, at once; a reader of the old one reads on in peace."""
        write_atomic(self.path, b"", self._disk)
        self.close()
        self._descriptor = os.open(self.path, self._flags, 0o644)

    def sync(self) -> None:
        """Make durable what was appended without; nothing once it is closed."""
        if self._descriptor >= 0:
            self._disk.sync(self._descriptor)

    def close(self) -> None:
        """Release the descriptor; safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _take_back(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError:
            self._broken = True
