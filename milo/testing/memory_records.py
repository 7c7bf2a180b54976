"""The run directory as memory: what the runtime's tests write to instead of a disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from milo.core.attempt import AttemptKey, Outcome, Usage
from milo.core.calls import CallBook, CallEntry
from milo.core.errors import StaleWriter
from milo.core.events import Event, Record
from milo.core.evidence import Trace
from milo.core.harness import Harness


class MemoryRecords:
    """Keeps everything that a run records; survives the pieces that write to it.

    `ticks` stands in for time: each record is one second after the last.
    """

    def __init__(self) -> None:
        self.journal: list[Record] = []
        self.outcomes: dict[AttemptKey, Outcome] = {}
        self.traces: dict[str, Trace] = {}
        self.sessions: dict[str, Trace] = {}
        self.harnesses: dict[str, Harness] = {}
        self.epochs: dict[str, int] = {}
        self.book = CallBook()
        self.call_entries: list[CallEntry] = []
        self.writes = 0

    def shortage(self) -> str:
        """Memory lacks nothing."""
        return ""

    def claim(self, shard: str) -> int:
        """A new epoch for a shard."""
        self.epochs[shard] = self.epochs.get(shard, -1) + 1
        return self.epochs[shard]

    def append(self, shard: str, epoch: int, events: Sequence[Event]) -> tuple[Record, ...]:
        """Append as a group; a stale epoch is refused."""
        self.fence(shard, epoch)
        fresh = tuple(
            Record(
                seq=len(self.journal) + i,
                time=float(len(self.journal) + i),
                shard=shard,
                epoch=epoch,
                event=event,
            )
            for i, event in enumerate(events)
        )
        self.journal.extend(fresh)
        self.writes += 1
        return fresh

    def fence(self, shard: str, epoch: int) -> None:
        """Refuse a stale epoch."""
        if epoch != self.epochs.get(shard):
            raise StaleWriter(f"shard {shard}: epoch {epoch} is not {self.epochs.get(shard)}")

    def records(self, from_seq: int = 0) -> Iterable[Record]:
        """The journal from a sequence number on."""
        return self.journal[from_seq:]

    def append_attempts(self, outcomes: Sequence[Outcome]) -> None:
        """Idempotent by key; a valid outcome is never replaced."""
        for outcome in outcomes:
            before = self.outcomes.get(outcome.key)
            if before is None or not before.is_valid:
                self.outcomes[outcome.key] = outcome

    def lookup(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Outcome]:
        """Valid outcomes on record."""
        found = {key: self.outcomes[key] for key in keys if key in self.outcomes}
        return {key: outcome for key, outcome in found.items() if outcome.is_valid}

    def spent_by_attempts(self) -> tuple[int, Usage]:
        """Attempts on record and their usage."""
        total = sum((o.usage for o in self.outcomes.values()), Usage())
        return len(self.outcomes), total

    def calls(self) -> CallBook | None:
        """The ledger of model calls so far; None where there is none."""
        return self.book if self.call_entries else None

    def append_calls(self, entries: Sequence[CallEntry]) -> CallBook:
        """Fold what became of model calls."""
        self.call_entries.extend(entries)
        for entry in entries:
            self.book.apply(entry)
        return self.book

    def put_trace(self, trace: Trace) -> str:
        """Store by content."""
        digest = hashlib.sha256(repr(trace).encode()).hexdigest()
        self.traces[digest] = trace
        return digest

    def get_trace(self, digest: str) -> Trace:
        """A stored trace."""
        return self.traces[digest]

    def put_session(self, scope: str, trace: Trace) -> None:
        """Keep a session's exchanges."""
        self.sessions[scope] = trace

    def put_harness(
        self,
        candidate: str,
        harness: Harness,
        parents: Sequence[str],
        message: str,
        *,
        replace: bool = False,
    ) -> None:
        """Keep a candidate."""
        self.harnesses[candidate] = harness

    def get_harness(self, candidate: str) -> Harness:
        """A kept candidate."""
        return self.harnesses[candidate]

    def close(self) -> None:
        """Nothing to flush."""
