"""What the runtime asks of whoever keeps a run: its records, and those of one that is replayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from milo.core.attempt import AttemptKey, Outcome, Usage
from milo.core.calls import CallBook, CallEntry
from milo.core.events import Event, Record
from milo.core.evidence import Exchange, Trace
from milo.core.harness import Harness
from milo.core.moves import Consultation, Move


class Records(Protocol):
    """The run directory's single writer, as `milo.store` offers it."""

    def shortage(self) -> str:
        """What the disk lacks for the next records, in words; "" where it lacks nothing."""
        ...

    def claim(self, shard: str) -> int:
        """A new epoch for a shard; older writers are refused from now on."""
        ...

    def append(self, shard: str, epoch: int, events: Sequence[Event]) -> tuple[Record, ...]:
        """Durable and atomic as a group; raises `StaleWriter`."""
        ...

    def fence(self, shard: str, epoch: int) -> None:
        """Raise `StaleWriter` where a newer owner holds the shard."""
        ...

    def records(self, from_seq: int = 0) -> Iterable[Record]:
        """The journal from a sequence number on."""
        ...

    def append_attempts(self, outcomes: Sequence[Outcome]) -> None:
        """Durable; idempotent by key."""
        ...

    def lookup(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Outcome]:
        """Valid outcomes that are on record."""
        ...

    def spent_by_attempts(self) -> tuple[int, Usage]:
        """How many attempts are on record, and their usage."""
        ...

    def calls(self) -> CallBook | None:
        """The ledger of model calls; None in a run that has none yet."""
        ...

    def append_calls(self, entries: Sequence[CallEntry]) -> CallBook:
        """Record what became of model calls; the book with it."""
        ...

    def put_trace(self, trace: Trace) -> str:
        """Store by content; the hash."""
        ...

    def get_trace(self, digest: str) -> Trace:
        """A stored trace."""
        ...

    def put_session(self, scope: str, trace: Trace) -> None:
        """Keep a mutator's or orchestrator's model exchanges under their scope."""
        ...

    def put_harness(
        self,
        candidate: str,
        harness: Harness,
        parents: Sequence[str],
        message: str,
        *,
        replace: bool = False,
    ) -> None:
        """Commit a candidate; idempotent. `replace` allows another tree under a known id."""
        ...

    def get_harness(self, candidate: str) -> Harness:
        """A candidate's harness."""
        ...

    def close(self) -> None:
        """Flush and release the lock."""
        ...


class Replay(Protocol):
    """A recorded run, as `milo.store` opens it for replay."""

    def outcome(self, key: AttemptKey) -> Outcome | None:
        """The recorded outcome of an attempt."""
        ...

    def exchanges(self, scope: str) -> tuple[Exchange, ...]:
        """The model calls recorded under a scope."""
        ...

    def moves(self, island: str, round_: int) -> tuple[Move, ...]:
        """The moves recorded as applied to an island before its round."""
        ...

    def closed(self, island: str) -> tuple[int, str] | None:
        """The last round that an island finished before it was closed, and why it was."""
        ...

    def begun(self, island: str) -> int:
        """The last round in which anything was decided on an island; -1 where nothing was."""
        ...

    def proposals(self, candidate: str) -> int:
        """How often a mutator proposed for a candidate, refused proposals counted too."""
        ...

    def consultation(self, island: str, round_: int) -> Consultation | None:
        """The orchestrator's recorded answer."""
        ...
