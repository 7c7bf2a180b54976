"""Traces, each stored once under the hash of its content, and never kept in memory."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from pathlib import Path

from milo.core.errors import RecordError
from milo.core.evidence import Trace
from milo.store.codec import decode_trace, encode
from milo.store.files import Disk, write_atomic, write_failed

# Traces are text; level 3 is within a tenth of level 9 in size at a quarter of its time.
LEVEL = 3
_HASH = re.compile(r"[0-9a-f]{64}")


class TraceStore:
    """Traces below one folder. One owner puts, anyone gets."""

    def __init__(self, root: Path, disk: Disk | None = None) -> None:
        """With a disk the store may be written."""
        self.root = root
        self._disk = disk

    def put(self, trace: Trace) -> str:
        """Store a trace, if it is new; its SHA-256 over the canonical JSON.

        It survives the death of the process at once, but not that of the machine: two forced
        writes an attempt would cost more than small attempts do, and a trace that a power cut
        took is evidence lost, not a measurement. `get` then says so.
        """
        if self._disk is None:
            raise RecordError("these traces were opened for reading only")
        data = encode(trace, sort_keys=True)
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        if not _is_filled(path):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise write_failed(path.parent, error) from error
            # No time stamp: equal traces are equal files.
            packed = gzip.compress(data, compresslevel=LEVEL, mtime=0)
            write_atomic(path, packed, self._disk, durable=False)
        return digest

    def get(self, digest: str) -> Trace:
        """Read a trace back; raises `RecordError` where it is missing or damaged."""
        path = self.path(digest)
        try:
            data = gzip.decompress(path.read_bytes())
        except FileNotFoundError:
            raise RecordError(f"{path}: there is no trace {digest[:12]}") from None
        except (OSError, EOFError, zlib.error) as error:
            raise RecordError(f"{path}: damaged trace: {error}") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise RecordError(f"{path}: the trace does not match its hash")
        return decode_trace(data, str(path))

    def __contains__(self, digest: object) -> bool:
        return (
            isinstance(digest, str)
            and bool(_HASH.fullmatch(digest))
            and _is_filled(self.path(digest))
        )

    def path(self, digest: str) -> Path:
        """Where a trace lies; raises `RecordError` for what is no hash."""
        if not _HASH.fullmatch(digest):
            raise RecordError(f"{digest!r} is no trace hash")
        return self.root / digest[:2] / f"{digest}.json.gz"


def _is_filled(path: Path) -> bool:
    """A power cut may leave an empty file under the name; it counts as none."""
    return path.exists() and path.stat().st_size > 0
