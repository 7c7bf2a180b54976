"""What a running search leaves beside its records for others to look at: `progress.json`.

It holds the newest snapshot (queue, attempts in flight, what each island does) and the status as
it was at a record of the journal. It is never trusted beyond that record: a reader that finds the
journal further on folds the journal itself. Losing the file loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from milo.core.errors import RecordError
from milo.core.events import Record
from milo.core.population import Population
from milo.store import RunReader
from milo.store.codec import decode, encode
from milo.store.files import Disk, write_atomic
from milo.store.journal import last_seq
from milo.views.spending import Coverage, MomentsFold, Tally
from milo.views.status import Status, status_at, status_of, told_now
from milo.views.view import Progress, View

NAME = "progress.json"
EVERY_S = 2.0
FRESH_S = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """The file's content: the status at record `seq`, the time of the last progress, and the
    snapshot of the moment `written` (seconds since the epoch)."""

    seq: int
    written: float
    progressed: float | None
    status: Status
    snapshot: Progress | None


class NotedView:
    """A view that passes everything on to another one and keeps `progress.json` up to date."""

    def __init__(self, view: View, path: Path, now: Callable[[], float]) -> None:
        self._view = view
        self._path = path
        self._now = now
        self._population = Population()
        self._moments = MomentsFold()
        self._seq = -1
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
            self._seq = record.seq

    def _write(self) -> None:
        now, moments = self._now(), self._moments.moments
        note = Note(
            seq=self._seq,
            written=now,
            progressed=moments.progress,
            status=status_at(self._population, moments, Tally(), run="", now=now),
            snapshot=self._snapshot,
        )
        self._written = now
        # Not forced to the disk: after a power cut the records tell the same, more slowly.
        write_atomic(self._path / NAME, encode(note), Disk(), durable=False)


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


def quick_status(reader: RunReader, now: float) -> Status:
    """The status of a run: from its note where that is in step with the journal, else by a fold.

    Attempts are counted by columns, never row by row.
    """
    note, alive = read_note(reader.path), reader.owner() is not None
    sums = count_attempts(reader.attempts)
    fresh = note.snapshot if note and alive and now - note.written < FRESH_S else None
    run = str(reader.path)
    if note is None or last_seq(reader.path / "journal.jsonl") != note.seq:
        return status_of(reader.records(), sums, run=run, alive=alive, now=now, progress=fresh)
    since = None if note.progressed is None else max(0.0, now - note.progressed)
    spend = {**note.status.spend, "target": sums.usage}
    found = replace(
        note.status,
        run=run,
        spend=spend,
        coverage=sums.total,
        faults=sums.faults,
        since_progress_s=since,
    )
    return told_now(found, alive=alive, progress=fresh)


def count_attempts(attempts: Any) -> Tally:
    """Sums of an attempts table from its index, its parts' own totals and one column.

    Usage counts everything that was paid, replaced attempts included.
    """
    made, valid = attempts.count, attempts.valid_count
    faults: dict[str, int] = {}
    if made > valid:
        table = attempts.table()
        missing = table.filter(~table["valid"].to_numpy())
        counted = missing["status"].value_counts().to_pylist()
        faults = {str(row["values"]): int(row["counts"]) for row in counted}
    return Tally(
        total=Coverage(attempted=made, valid=valid),
        usage=attempts.spent(),
        faults=dict(sorted(faults.items())),
    )
