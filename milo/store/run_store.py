"""The one writer of a run directory: everything that is recorded goes through a `RunStore`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from milo.core.attempt import AttemptKey, Outcome, Usage
from milo.core.calls import CallBook, CallEntry
from milo.core.errors import RecordError, RunError, StaleWriter
from milo.core.events import Event, Record
from milo.core.evidence import Trace
from milo.core.harness import Harness
from milo.core.population import Population
from milo.core.ports import Clock
from milo.store.attempts import PART_ROWS, AttemptTable
from milo.store.calls import CallLog
from milo.store.codec import dump_json, load_json
from milo.store.files import Disk, shortage_of, sync_folder, write_atomic
from milo.store.harnesses import HarnessStore
from milo.store.journal import Journal, JournalReader
from milo.store.layout import FORMAT, RunPaths, read_facts
from milo.store.lock import RunLock
from milo.store.sessions import Sessions
from milo.store.traces import TraceStore

MIN_FREE_BYTES = 256 * 1024 * 1024


class RunStore:
    """A run directory, owned for writing. Not thread-safe: one owner, one call at a time.

    `attempts`, `traces`, `harnesses` and `sessions` are the stores inside it; `warnings` says
    what a former owner left unfinished. Everything written is durable when the call returns, but
    for model calls (`store.calls` says why).
    """

    def __init__(
        self, paths: RunPaths, lock: RunLock, clock: Clock, disk: Disk, part_rows: int
    ) -> None:
        """Use `create` or `open`; this one is given a lock that is already held."""
        facts = read_facts(paths.root)
        self.path = paths.root
        self.name = facts.name
        self.plan: Mapping[str, object] = load_json(paths.plan.read_bytes(), str(paths.plan))
        self._paths, self._lock, self._disk = paths, lock, disk
        self._journal = Journal(paths.journal, disk, clock)
        self.attempts = AttemptTable.own(paths.attempts, disk, part_rows)
        self.traces = TraceStore(paths.traces, disk)
        self.harnesses = HarnessStore(paths.harnesses, writable=True)
        self.sessions = Sessions(paths.sessions, disk)
        self._calls = CallLog(paths.calls, disk)
        self._epochs = _read_epochs(paths.epochs)
        for shard, epoch in self._journal.epochs.items():
            self._epochs[shard] = max(epoch, self._epochs.get(shard, 0))
        self.warnings: tuple[str, ...] = (
            *self._journal.warnings,
            *self.attempts.warnings,
            *self.sessions.warnings,
            *self._calls.warnings,
        )

    @classmethod
    def create(
        cls,
        path: Path,
        name: str,
        plan: Mapping[str, object],
        *,
        clock: Clock,
        min_free_bytes: int = MIN_FREE_BYTES,
        disk: Disk | None = None,
        part_rows: int = PART_ROWS,
    ) -> RunStore:
        """Make a new run directory and own it.

        `plan` is JSON-ready data (`codec.encode_plan`). Raises `RunError` for a path that holds
        anything already, or a disk with less than `min_free_bytes` left.
        """
        disk = disk or Disk()
        _make_folder(path)
        free = disk.free(path)
        if free < min_free_bytes:
            raise RunError(
                f"disk of {path}", f"at least {min_free_bytes:,} bytes free", f"{free:,}"
            )
        paths = RunPaths(path)
        lock = RunLock(paths.lock)
        try:
            _refuse_content(path)
            _lay_out(paths, name, plan, clock.now(), disk)
            return cls(paths, lock, clock, disk, part_rows)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        disk: Disk | None = None,
        part_rows: int = PART_ROWS,
    ) -> RunStore:
        """Own an existing run, to go on with it.

        Raises `RunError` where it is no run, or where a live process owns it (named).
        """
        read_facts(path)
        paths = RunPaths(path)
        lock = RunLock(paths.lock)
        try:
            return cls(paths, lock, clock, disk or Disk(), part_rows)
        except BaseException:
            lock.release()
            raise

    def shortage(self) -> str:
        """What the disk lacks for the next records; "" where it lacks nothing."""
        return shortage_of(self.path, self._disk)

    def claim(self, shard: str) -> int:
        """Become the writer of a shard: a new epoch, larger than any before, also after a crash.

        Whoever holds an older epoch of the shard is refused from now on.
        """
        epoch = self._epochs.get(shard, 0) + 1
        epochs = {**self._epochs, shard: epoch}
        write_atomic(self._paths.epochs, dump_json(epochs, sort_keys=True) + b"\n", self._disk)
        self._epochs = epochs
        return epoch

    def append(self, shard: str, epoch: int, events: Sequence[Event]) -> tuple[Record, ...]:
        """Record events of one shard, durably, all or none.

        Raises `StaleWriter` as `fence` does, `DiskFull` where there is no room (nothing is then
        recorded, and the call may be repeated).
        """
        self.fence(shard, epoch)
        return self._journal.append(shard, epoch, events)

    def fence(self, shard: str, epoch: int) -> None:
        """Raise `StaleWriter` where `epoch` isn't the shard's newest: another owner writes it."""
        newest = self._epochs.get(shard, 0)
        if epoch != newest or newest == 0:
            raise StaleWriter(
                f"shard {shard}: epoch {epoch} may not write, the newest is {newest or 'unclaimed'}"
            )

    def records(self, from_seq: int = 0) -> Iterator[Record]:
        """The journal from a number on, read from the disk."""
        return JournalReader(self._paths.journal).records(from_seq)

    def population(self) -> Population:
        """A new fold of the whole journal; the caller may go on folding into it."""
        return Population.of(self.records())

    def append_attempts(self, outcomes: Sequence[Outcome]) -> None:
        """Record outcomes durably; those already on record are ignored (`AttemptTable.append`)."""
        self.attempts.append(outcomes)

    def lookup(self, keys: Iterable[AttemptKey]) -> dict[AttemptKey, Outcome]:
        """The valid outcomes on record of the given keys."""
        return self.attempts.lookup(keys)

    def spent_by_attempts(self) -> tuple[int, Usage]:
        """How many attempts are on record, and what all of them used."""
        return self.attempts.count, self.attempts.spent()

    def calls(self) -> CallBook | None:
        """The ledger of model calls, which goes on with `append_calls`; None in a run that has
        none yet."""
        return self._calls.book if self._calls.known else None

    def append_calls(self, entries: Sequence[CallEntry]) -> CallBook:
        """Record what became of model calls; the book with it."""
        self._calls.append(entries)
        return self._calls.book

    def put_trace(self, trace: Trace) -> str:
        """Store a trace by its content; its hash."""
        return self.traces.put(trace)

    def get_trace(self, digest: str) -> Trace:
        """A stored trace; raises `RecordError`."""
        return self.traces.get(digest)

    def put_session(self, scope: str, trace: Trace) -> None:
        """Keep a model session that belongs to no attempt under its scope."""
        self.sessions.put(scope, self.traces.put(trace))

    def put_harness(
        self,
        candidate: str,
        harness: Harness,
        parents: Sequence[str],
        message: str,
        *,
        replace: bool = False,
    ) -> None:
        """Commit a candidate on the branch of its island, whose id its own begins with."""
        self.harnesses.put(
            candidate,
            harness,
            island=candidate.rpartition(".")[0] or candidate,
            parents=tuple(parents),
            message=message,
            replace=replace,
        )

    def get_harness(self, candidate: str) -> Harness:
        """A committed candidate; raises `RecordError`."""
        return self.harnesses.get(candidate)

    def close(self) -> None:
        """Give the run back, whatever a part of it says to its end; safe to call twice."""
        with ExitStack() as closing:
            closing.callback(self._lock.release)
            closing.callback(self._lock.clear)
            closing.callback(self.harnesses.close)
            closing.callback(self._calls.close)
            closing.callback(self.sessions.close)
            closing.callback(self.attempts.close)
            closing.callback(self._journal.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise RunError(f"run {path}", "a new or empty folder", "a file") from None
    except OSError as error:
        raise RunError(f"run {path}", "a folder that can be made", str(error.strerror)) from error
    _refuse_content(path)


def _refuse_content(path: Path) -> None:
    inside = sorted(entry.name for entry in path.iterdir() if entry.name != "lock")
    if RunPaths(path).run.exists():
        raise RunError(f"run {path}", "a new or empty folder", "a run; resume it instead")
    if inside:
        raise RunError(f"run {path}", "a new or empty folder", f"{len(inside)} files in it")


def _lay_out(
    paths: RunPaths, name: str, plan: Mapping[str, object], now: float, disk: Disk
) -> None:
    for folder in (paths.attempts, paths.traces):
        folder.mkdir()
    text = json.dumps(plan, indent=2, sort_keys=True, allow_nan=False)
    write_atomic(paths.plan, text.encode() + b"\n", disk)
    for empty in (paths.journal, paths.sessions, paths.attempts / "pending.jsonl"):
        empty.touch()
    facts = {"format": FORMAT, "name": name, "created": now}
    # Last: a directory without it was never finished, and nothing may resume it.
    write_atomic(paths.run, dump_json(facts) + b"\n", disk)
    sync_folder(paths.root.parent)


def _read_epochs(path: Path) -> dict[str, int]:
    if not path.exists():
        return {}
    epochs = load_json(path.read_bytes(), str(path))
    if not isinstance(epochs, dict) or not all(isinstance(e, int) for e in epochs.values()):
        raise RecordError(f"{path}: no table of epochs")
    return epochs
