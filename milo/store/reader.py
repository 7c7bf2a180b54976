"""Reading a run, alive or dead, without owning it: for status, report and export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from milo.core.calls import CallBook
from milo.core.errors import RecordError
from milo.core.events import Record, RunEnded, RunResumed
from milo.core.population import Population
from milo.store.attempts import AttemptTable
from milo.store.calls import CallLog
from milo.store.codec import load_json
from milo.store.harnesses import HarnessStore
from milo.store.journal import JournalMark, JournalReader
from milo.store.layout import RunPaths, read_facts
from milo.store.lock import Owner, read_owner
from milo.store.sessions import Sessions
from milo.store.sums import AttemptSums, read_sums
from milo.store.traces import TraceStore


class RunReader:
    """A run directory, read only; takes no lock and changes nothing.

    While a writer is alive every call sees a consistent prefix: `records` and `population` what
    the journal holds now, `attempts` and `sessions` what they held when first asked for (open
    another reader to see more). Raises `RunError` where the directory is no run, `RecordError`
    where its journal is gone.
    """

    def __init__(self, path: Path) -> None:
        facts = read_facts(path)
        self.path = path
        self.name = facts.name
        self.created = facts.created
        self._paths = RunPaths(path)
        self._journal = self._rest = JournalReader(self._paths.journal)
        if not self._paths.journal.exists():
            raise RecordError(f"{self._paths.journal} is missing: the run is not whole")

    @cached_property
    def plan(self) -> Mapping[str, object]:
        """The resolved configuration, as data (`codec.decode_plan` types it)."""
        data: Mapping[str, object] = load_json(self._paths.plan.read_bytes(), str(self._paths.plan))
        return data

    @cached_property
    def attempts(self) -> AttemptTable:
        """The attempts."""
        return AttemptTable.read(self._paths.attempts)

    @cached_property
    def traces(self) -> TraceStore:
        """The traces."""
        return TraceStore(self._paths.traces)

    @cached_property
    def harnesses(self) -> HarnessStore:
        """The harnesses."""
        return HarnessStore(self._paths.harnesses)

    @cached_property
    def sessions(self) -> Sessions:
        """The model sessions that belong to no attempt."""
        return Sessions(self._paths.sessions)

    @property
    def calls(self) -> CallBook | None:
        """The ledger of model calls as it is now; None in a run that keeps none."""
        log = CallLog(self._paths.calls)
        return log.book if log.known else None

    def attempt_sums(self) -> AttemptSums:
        """What all attempts come to, without opening them where their owner has left the sums."""
        return read_sums(self._paths.attempts) or self.attempts.sums()

    def records(self, from_seq: int = 0) -> Iterator[Record]:
        """The journal from a number on."""
        return self._journal.records(from_seq)

    def records_after(self, mark: JournalMark) -> Iterator[Record] | None:
        """The journal from a mark on; None where it is not the journal that the mark was set in."""
        if not mark.holds(self._paths.journal):
            return None
        self._rest = JournalReader(self._paths.journal, mark)
        return self._rest.records()

    def is_finished(self) -> bool:
        """Whether the run has ended and was not resumed since; nothing is decoded for it."""
        kinds = (RunEnded.kind, RunResumed.kind)
        turns = [entry.kind for entry in self._journal.entries() if entry.kind in kinds]
        return turns[-1:] == [RunEnded.kind]

    def population(self) -> Population:
        """A new fold of the whole journal."""
        return Population.of(self.records())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reads so far found unfinished: a record being written now, or torn by a kill."""
        read = [self._journal.warnings or self._rest.warnings]
        read += [self.__dict__[n].warnings for n in ("attempts", "sessions") if n in self.__dict__]
        return tuple(warning for warnings in read for warning in warnings)

    def owner(self) -> Owner | None:
        """The live process that writes the run, or None."""
        owner = read_owner(self._paths.lock)
        return owner if owner is not None and owner.is_alive else None

    def is_owned_elsewhere(self) -> bool:
        """Whether the run names a writer on another machine; only that one knows if it lives."""
        owner = read_owner(self._paths.lock)
        return owner is not None and not owner.is_here

    def close(self) -> None:
        """End git's reading process; safe to call twice."""
        if "harnesses" in self.__dict__:
            self.harnesses.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
