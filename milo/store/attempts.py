"""Every attempt's outcome, recorded once: durable at once, compacted to Parquet, found by key.

New outcomes go to `pending.jsonl`, each under the number of the part it is meant for; when there
are enough they become that part, which appears by a rename. Lines meant for a part that exists
are therefore already in it, whenever the writer died.

Of one key a valid outcome is final. An infrastructure outcome is replaced by whatever comes
next; its usage stays spent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from milo.core.attempt import AttemptKey, Outcome, Usage
from milo.core.errors import RecordError
from milo.store.attempt_rows import schema, to_parquet, to_table
from milo.store.codec import decode, encode
from milo.store.files import AppendFile, Disk, write_atomic
from milo.store.key_index import hash_keys
from milo.store.lines import LineReader, seal, torn_warning
from milo.store.parts import Parts
from milo.store.sums import (
    PENDING,
    AttemptSums,
    PendingRow,
    read_finished,
    with_pending,
    write_sums,
)

PART_ROWS = 20_000


class AttemptTable:
    """The attempts of one run. One owner writes; readers see what was there when they opened."""

    def __init__(self, folder: Path, disk: Disk | None, part_rows: int = PART_ROWS) -> None:
        """With a disk, own the table for writing; without one, read it. See `own` and `read`."""
        self._disk = disk
        self._part_rows = part_rows
        # Before the parts: a writer that compacts in between moves rows from here to there.
        lines = LineReader(folder / PENDING)
        rows = [decode(PendingRow, b.body, lines.where(b.number)) for b in lines]
        self.warnings = torn_warning(lines.path, lines.torn)
        self._parts = Parts(folder)
        self._pending: list[PendingRow] = []
        self._newest: dict[AttemptKey, Outcome] = {}
        self._live = self._parts.live_rows()
        self._new_keys = 0
        self._finished = read_finished(folder, self._parts.count)
        pending = [row.outcome for row in rows if row.part > self._parts.count]
        places = self._placed(pending)
        self._pending = self._rows(pending, places)
        self._take(pending, places)
        self._file = None if disk is None else AppendFile(lines.path, disk, keep=lines.end)
        if self._file is not None and rows and not self._pending:
            self._file.renew()
        if disk is not None and self._finished is None:
            self._finished = self._sums_of_parts()
            write_sums(folder, self._parts.count, self._finished, disk)

    @classmethod
    def read(cls, folder: Path) -> AttemptTable:
        """Open for reading only; raises `RecordError` where the records are damaged."""
        return cls(folder, None)

    @classmethod
    def own(cls, folder: Path, disk: Disk, part_rows: int = PART_ROWS) -> AttemptTable:
        """Open for writing; the caller holds the run's lock."""
        return cls(folder, disk, part_rows)

    def append(self, outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
        """Record outcomes durably; those that were news, in order.

        Ignored, since work is executed at least once: a second outcome for a key with a valid
        one, and a repetition of an infrastructure outcome. Raises `DiskFull`; the call may then
        be repeated.
        """
        if self._file is None or self._disk is None:
            raise RecordError("these attempts were opened for reading only")
        places = self._placed(outcomes)
        news = self._news(outcomes, places)
        if news:
            rows = self._rows(news, places)
            self._file.append(b"".join(seal(encode(row)) for row in rows))
            self._take(news, places)
            self._pending += rows
        if len(self._pending) >= self._part_rows:
            self.compact()
        return tuple(news)

    def compact(self) -> None:
        """Turn everything pending into a part; nothing where nothing is."""
        if self._file is None or self._disk is None:
            raise RecordError("these attempts were opened for reading only")
        if not self._pending:
            return
        number = self._parts.count + 1
        outcomes = [row.outcome for row in self._pending]
        write_atomic(self._parts.path(number), to_parquet(outcomes), self._disk)
        self._parts.adopt(number)
        self._finished = self.sums()
        self._pending, self._newest, self._live = [], {}, self._parts.live_rows()
        self._new_keys = 0
        self._file.renew()
        write_sums(self._parts.folder, number, self._finished, self._disk)

    def lookup(self, keys: Iterable[AttemptKey]) -> dict[AttemptKey, Outcome]:
        """The valid outcomes of the given keys; keys without one are left out."""
        return {key: o for key, o in self.newest(keys).items() if o.is_valid}

    def newest(self, keys: Iterable[AttemptKey]) -> dict[AttemptKey, Outcome]:
        """The newest outcome of each key, valid or missing; unknown keys are left out."""
        wanted = list(dict.fromkeys(keys))
        found = {key: self._newest[key] for key in wanted if key in self._newest}
        others = [key for key in wanted if key not in found]
        found |= self._in_parts(self._places(others))
        return {key: found[key] for key in wanted if key in found}

    def of_harness(self, digest: str) -> tuple[Outcome, ...]:
        """The newest outcome of every key of one harness, in the order of recording."""
        rows = self._parts.rows_of_harness(digest)
        live = rows[self._live[rows]]
        pending = [o for o in self._newest.values() if o.key.harness == digest]
        return (*self._parts.outcomes(live), *pending)

    def harnesses(self, prefix: str = "") -> tuple[str, ...]:
        """Digests of the harnesses with attempts that begin so, sorted."""
        known = self._parts.harnesses() | {key.harness for key in self._newest}
        return tuple(sorted(digest for digest in known if digest.startswith(prefix)))

    def iter(self) -> Iterator[Outcome]:
        """The newest outcome of every key, in the order of recording; memory stays bounded."""
        rows = np.flatnonzero(self._live)
        for start in range(0, len(rows), self._part_rows):
            yield from self._parts.outcomes(rows[start : start + self._part_rows])
        yield from self._newest.values()

    def table(self) -> Any:
        """The newest row of every key as one `pyarrow.Table` with the columns of `schema()`."""
        tables = [part.cast(schema()) for part in self._parts.tables(self._live)]
        return pa.concat_tables([*tables, to_table(list(self._newest.values()))])

    @property
    def count(self) -> int:
        """Keys with an outcome, valid or missing."""
        return len(self._parts.index) + self._new_keys

    @property
    def valid_count(self) -> int:
        """Keys with a valid outcome."""
        in_parts = int(np.count_nonzero(self._parts.index.valid))
        return in_parts + sum(outcome.is_valid for outcome in self._newest.values())

    def spent(self) -> Usage:
        """What all attempts used, replaced ones included."""
        return sum((row.outcome.usage for row in self._pending), self._parts.spent)

    def sums(self) -> AttemptSums:
        """What everything on record comes to."""
        return with_pending(self._finished or self._sums_of_parts(), self._pending)

    def close(self) -> None:
        """Release the file; safe to call twice."""
        if self._file is not None:
            self._file.close()

    def _news(self, outcomes: Sequence[Outcome], places: Mapping[AttemptKey, int]) -> list[Outcome]:
        valid = self._parts.index.valid
        final = {key for key, at in places.items() if at >= 0 and valid[at]}
        known = {key: self._newest[key] for key in places if key in self._newest}
        known |= self._in_parts(
            [at for key, at in places.items() if key not in known and key not in final]
        )
        news = []
        for outcome in outcomes:
            former = known.get(outcome.key)
            is_final = former is not None and (former.is_valid or former == outcome)
            if outcome.key not in final and not is_final:
                known[outcome.key] = outcome
                news.append(outcome)
        return news

    def _take(self, outcomes: Sequence[Outcome], places: Mapping[AttemptKey, int]) -> None:
        """Add outcomes that are news to what is found by key."""
        for outcome in outcomes:
            at = places[outcome.key]
            if at >= 0:
                self._live[self._parts.index.row[at]] = False
            elif outcome.key not in self._newest:
                self._new_keys += 1
            self._newest.pop(outcome.key, None)
            self._newest[outcome.key] = outcome

    def _rows(
        self, outcomes: Sequence[Outcome], places: Mapping[AttemptKey, int]
    ) -> list[PendingRow]:
        """News as lines of the pending file; called before they are taken."""
        part, rows = self._parts.count + 1, []
        fresh = {o.key: places[o.key] for o in outcomes if o.key not in self._newest}
        former = self._in_parts(list(fresh.values()))
        for outcome in outcomes:
            # Of a key that comes twice only the first takes the place of what is in a part.
            replaced = former.pop(outcome.key, None)
            status = str(replaced.status) if replaced is not None else ""
            rows.append(PendingRow(part=part, outcome=outcome, replaces=status))
        return rows

    def _sums_of_parts(self) -> AttemptSums:
        index = self._parts.index
        missing = index.row[~index.valid].astype(np.int64)
        return AttemptSums(
            made=len(index),
            valid=int(np.count_nonzero(index.valid)),
            faults=self._parts.statuses(missing),
            usage=self._parts.spent,
        )

    def _placed(self, outcomes: Sequence[Outcome]) -> dict[AttemptKey, int]:
        keys = [outcome.key for outcome in outcomes]
        return dict(zip(keys, self._places(keys), strict=True))

    def _places(self, keys: Sequence[AttemptKey]) -> list[int]:
        """Where each key stands in the index of the parts; −1 for those that it lacks."""
        places: list[int] = self._parts.index.find(*hash_keys(keys)).tolist()
        return places

    def _in_parts(self, places: Sequence[int]) -> dict[AttemptKey, Outcome]:
        """The outcomes at places of the index."""
        at = np.array([place for place in places if place >= 0], np.int64)
        rows = self._parts.index.row[at].astype(np.int64)
        return {outcome.key: outcome for outcome in self._parts.outcomes(rows)}


def read_table(path: Path) -> Any:
    """All attempts of a run as one `pyarrow.Table`, for analysis.

    `path` is a run directory or its `attempts` folder; the columns are those of
    `attempt_rows.schema`, in the order of recording; only the newest row of each key is in it.
    """
    folder = path / "attempts" if (path / "attempts").is_dir() else path
    return AttemptTable.read(folder).table()
