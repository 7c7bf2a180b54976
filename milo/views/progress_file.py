"""What a running search leaves beside its records for others to look at: `progress.json`.

It holds the newest snapshot (queue, attempts in flight, what each island does) and the fold of the
journal up to a mark in it, as small as `status` needs it. It is believed only where the journal
still begins with the marked bytes, and carried on over what was recorded since; else, or where
that needs more than the note holds, the journal is folded. Losing the file loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from milo.core.budget import Budget
from milo.core.calls import CallBook
from milo.core.errors import DiskFull, RecordError
from milo.core.events import Record
from milo.core.population import Population
from milo.store import RunPaths, RunReader
from milo.store.codec import decode, encode
from milo.store.files import Disk, write_atomic
from milo.store.journal import JournalMark
from milo.views.lost_calls import unsettled_of
from milo.views.spending import Coverage, MomentsFold, Tally
from milo.views.status import Status, status_at, told_now
from milo.views.status_fold import Folded, StatusFold, fold_of, folded
from milo.views.view import Progress, View

NAME = "progress.json"
EVERY_S = 2.0
FRESH_S = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """The file's content: the past up to a mark in the journal, and the snapshot of the moment
    `written` (seconds since the epoch)."""

    mark: JournalMark
    past: Folded
    written: float
    snapshot: Progress | None


class NotedView:
    """A view that passes everything on to another one and keeps `progress.json` up to date."""

    def __init__(
        self, view: View, path: Path, now: Callable[[], float], disk: Disk | None = None
    ) -> None:
        self._view = view
        self._disk = disk or Disk()
        self._path = path
        self._now = now
        self._population = Population()
        self._moments = MomentsFold()
        self._fold_now = StatusFold(Folded())
        self._mark = JournalMark()
        self._records = 0
        self._snapshot: Progress | None = None
        self._written = 0.0

    def start(self, title: str, past: Sequence[Record] = ()) -> None:
        """Begin, with the past of a resumed run."""
        self._fold(past)
        self._view.start(title, past)

    def update(self, records: Sequence[Record]) -> None:
        """New records; the note follows at once, so that a kill finds it in step."""
        self._fold(records)
        self._write()
        self._view.update(records)

    def progress(self, snapshot: Progress) -> None:
        """What is going on now; written every other second."""
        self._snapshot = snapshot
        if self._now() - self._written >= EVERY_S:
            self._write()
        self._view.progress(snapshot)

    def message(self, words: str) -> None:
        """A line for the user."""
        self._view.message(words)

    def stop(self) -> None:
        """Leave the last note behind, without the snapshot of what no longer goes on."""
        self._snapshot = None
        self._write()
        self._view.stop()

    def _fold(self, records: Sequence[Record]) -> None:
        for record in records:
            self._population.apply(record.event)
            self._moments.apply(record)
            self._fold_now.apply(record)
            self._records = record.seq + 1
        if self._fold_now.lost:
            self._fold_now = StatusFold(folded(self._population, self._moments.moments))

    def _write(self) -> None:
        mark = self._mark.advanced(RunPaths(self._path).journal, self._records)
        if mark.records != self._records:
            return  # not our journal
        self._mark, self._written = mark, self._now()
        note = Note(
            mark=mark,
            past=self._fold_now.folded,
            written=self._written,
            snapshot=self._snapshot,
        )
        # Not forced to the disk: after a power cut the records tell the same, more slowly. A full
        # disk may cost this note, never the search, which waits until there is room.
        with suppress(DiskFull, RecordError):
            write_atomic(self._path / NAME, encode(note), self._disk, durable=False)


def read_note(path: Path) -> Note | None:
    """The note of a run directory; None where there is none that can be read."""
    try:
        return decode(Note, (path / NAME).read_bytes(), str(path / NAME))
    except (OSError, RecordError):
        return None


def live_snapshot(path: Path, now: float) -> Progress | None:
    """What a live run is doing; None where its note is old, or there is none."""
    note = read_note(path)
    return note.snapshot if note and now - note.written < FRESH_S else None


def is_driven(reader: RunReader, now: float) -> bool:
    """Whether a live process drives the run: on this machine, which can be told, or on another one
    that shares the folder and has just left a note."""
    return reader.owner() is not None or (
        reader.is_owned_elsewhere() and live_snapshot(reader.path, now) is not None
    )


def quick_status(reader: RunReader, now: float) -> Status:
    """The status of a run: from its note and what was recorded since, else by a fold.

    Attempts are counted by sums, never row by row.
    """
    note, alive = read_note(reader.path), is_driven(reader, now)
    past = (note and _carried_on(reader, note)) or fold_of(reader.records())
    found = status_at(past, count_attempts(reader), run=str(reader.path), now=now)
    fresh = note.snapshot if note and alive and now - note.written < FRESH_S else None
    told = told_now(found, alive=alive, progress=fresh)
    # What a living writer is just writing is not torn.
    return _with_ledger(replace(told, warnings=() if alive else reader.warnings), reader.calls)


def standing(reader: RunReader, budget: Budget, now: float) -> Progress:
    """What a run that is about to go on starts from: nothing goes on yet, but time and money are
    spent already."""
    past = quick_status(reader, now)
    return Progress(budget=budget, spent=past.spent, seconds=past.active_s)


def _with_ledger(found: Status, book: CallBook | None) -> Status:
    if book is None:
        return found
    spent = replace(book.total, attempts=found.spent.attempts)
    return replace(found, spent=spent, unsettled=unsettled_of(book))


def _carried_on(reader: RunReader, note: Note) -> Folded | None:
    """The past up to the last record; None where the note does not lead there."""
    since = reader.records_after(note.mark)
    if since is None:
        return None
    fold = StatusFold(note.past)
    for record in since:
        fold.apply(record)
        if fold.lost:
            return None
    return fold.folded


def count_attempts(reader: RunReader) -> Tally:
    """Sums of a run's attempts; usage counts everything that was paid, replaced ones included."""
    sums = reader.attempt_sums()
    return Tally(
        total=Coverage(attempted=sums.made, valid=sums.valid),
        usage=sums.usage,
        faults=dict(sorted(sums.faults.items())),
    )
