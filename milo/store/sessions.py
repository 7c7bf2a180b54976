"""Which trace holds a model session that belongs to no attempt (mutators, orchestrator)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from milo.core.errors import RecordError
from milo.store.codec import decode, encode
from milo.store.files import AppendFile, Disk
from milo.store.lines import LineReader, seal, torn_warning


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionEntry:
    """One line of `sessions.jsonl`."""

    scope: str
    trace: str


class Sessions:
    """Scope -> trace hash. The newest entry of a scope counts: a repeated session replaces it."""

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        """Read the file; with a disk, own it for writing (a torn end is cut off)."""
        lines = LineReader(path)
        self._traces: dict[str, str] = {}
        for line in lines:
            entry = decode(SessionEntry, line.body, lines.where(line.number))
            self._traces[entry.scope] = entry.trace
        self.warnings = torn_warning(path, lines.torn)
        self._file = None if disk is None else AppendFile(path, disk, keep=lines.end)

    def __len__(self) -> int:
        return len(self._traces)

    def __iter__(self) -> Iterator[str]:
        """The scopes, in the order in which they were first recorded."""
        return iter(tuple(self._traces))

    def put(self, scope: str, trace: str) -> None:
        """Record a session durably; putting the same again does nothing."""
        if self._file is None:
            raise RecordError("these sessions were opened for reading only")
        if self._traces.get(scope) != trace:
            self._file.append(seal(encode(SessionEntry(scope=scope, trace=trace))))
            self._traces[scope] = trace

    def get(self, scope: str) -> str | None:
        """The trace hash of a scope, or None."""
        return self._traces.get(scope)

    def close(self) -> None:
        """Release the file; safe to call twice."""
        if self._file is not None:
            self._file.close()
