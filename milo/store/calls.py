"""The ledger of model calls on disk: `calls.jsonl`, a line before each call and one after it.

A line survives a crash of the process at once, one of the machine once the file has been renewed
or closed: two disk syncs a model call would cost more than many calls themselves. The file is
renewed when it has grown: what is over becomes one line a role. Lines that find the disk full are
kept for the next write, for a model call that was made can't wait to be counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from milo.core.calls import CallBook, CallEntry
from milo.core.errors import DiskFull, RecordError
from milo.store.codec import decode, encode
from milo.store.files import AppendFile, Disk, write_atomic
from milo.store.lines import LineReader, seal, torn_warning

RENEW_BYTES = 4 * 1024 * 1024


class CallLog:
    """The calls of one run. One owner writes; readers see what was there when they opened."""

    def __init__(
        self, path: Path, disk: Disk | None = None, renew_bytes: int = RENEW_BYTES
    ) -> None:
        """Read the file; with a disk, own it for writing (a torn end is cut off)."""
        lines = LineReader(path)
        self.book = CallBook()
        self.known = False
        self._owed = b""
        for line in lines:
            self.book.apply(decode(CallEntry, line.body, lines.where(line.number)))
            self.known = True
        self.warnings = torn_warning(path, lines.torn)
        self._disk = disk
        self._renew_bytes = renew_bytes
        self._file = None if disk is None else AppendFile(path, disk, keep=lines.end)

    def append(self, entries: Sequence[CallEntry]) -> None:
        """Record and fold entries; on a full disk the lines are written with later ones."""
        if self._file is None or self._disk is None:
            raise RecordError("these calls were opened for reading only")
        if not entries:
            return
        self._owed += b"".join(seal(encode(entry)) for entry in entries)
        for entry in entries:
            self.book.apply(entry)
        self.known = True
        with suppress(DiskFull):
            self._pay()
            if self._file.size > self._renew_bytes:
                self._renew()

    def close(self) -> None:
        """Make everything durable and release the file; raises `DiskFull` where lines that are
        owed find no room now either. Safe to call twice."""
        if self._file is None:
            return
        try:
            self._pay()
        finally:
            self._owed = b""
            self._file.sync()
            self._file.close()

    def _pay(self) -> None:
        """Write the lines that are owed, all or none."""
        if self._file is not None and self._owed:
            self._file.append(self._owed, durable=False)
            self._owed = b""

    def _renew(self) -> None:
        assert self._file is not None and self._disk is not None
        path = self._file.path
        kept = b"".join(seal(encode(entry)) for entry in self.book.entries())
        write_atomic(path, kept, self._disk)
        self._file.close()
        self._file = AppendFile(path, self._disk)
        # What may never shrink again must not be rewritten at every call.
        self._renew_bytes = max(self._renew_bytes, 2 * len(kept))
