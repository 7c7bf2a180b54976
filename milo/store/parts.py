"""The Parquet parts of the attempts table: which there are, what they hold, and their rows."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from milo.core.attempt import Outcome, Usage
from milo.core.errors import RecordError
from milo.store.attempt_rows import from_rows, open_part, usage_of
from milo.store.key_index import KeyIndex, Rows
from milo.store.sums import part_path

CACHED_PARTS = 4
_PART = re.compile(r"part-(\d{5,})\.parquet")


class Parts:
    """The finished parts of one table, with an index of their newest rows. One owner.

    Rows are numbered over all parts from 0. `spent` is the usage of every row, superseded ones
    included: what was paid stays paid.
    """

    def __init__(self, folder: Path) -> None:
        """Read what is there now; raises `RecordError` for a damaged or missing part."""
        self.folder = folder
        self.index = KeyIndex.empty()
        self.spent = Usage()
        self._starts = [0]
        self._of_harness: dict[str, list[int]] = {}
        self._tables: OrderedDict[int, Any] = OrderedDict()
        self.adopt(self._count_files())

    @property
    def count(self) -> int:
        """How many parts there are; the next one has this number plus one."""
        return len(self._starts) - 1

    @property
    def rows(self) -> int:
        """Rows over all parts."""
        return self._starts[-1]

    def path(self, number: int) -> Path:
        """Where the part with this number (from 1) lies."""
        return part_path(self.folder, number)

    def adopt(self, upto: int) -> None:
        """Index the parts up to this number that aren't indexed yet."""
        first = self.rows
        found = [self._scan(number) for number in range(self.count + 1, upto + 1)]
        if found:
            high, low, valid = (np.concatenate(column) for column in zip(*found, strict=True))
            self.index = self.index.extended(high, low, valid, first)

    def outcomes(self, rows: Rows) -> list[Outcome]:
        """The outcomes at the given rows, in the order of the rows sorted."""
        ordered = np.sort(rows)
        found: list[Outcome] = []
        for number in range(1, self.count + 1):
            start, end = self._starts[number - 1], self._starts[number]
            low, high = np.searchsorted(ordered, (start, end))
            if low < high:
                found += from_rows(self._table(number).take(ordered[low:high] - start))
        return found

    def statuses(self, rows: Rows) -> dict[str, int]:
        """How many of the given rows have which status."""
        ordered, counts = np.sort(rows), Counter[str]()
        for number in range(1, self.count + 1):
            start, end = self._starts[number - 1], self._starts[number]
            low, high = np.searchsorted(ordered, (start, end))
            if low < high:
                column = self._read(number, ["status"])["status"].take(ordered[low:high] - start)
                for row in column.value_counts().to_pylist():
                    counts[str(row["values"])] += int(row["counts"])
        return dict(counts)

    def harnesses(self) -> set[str]:
        """Digests of all harnesses in the parts."""
        return set(self._of_harness)

    def live_rows(self) -> NDArray[np.bool_]:
        """Which rows are the newest of their key; shape (rows,)."""
        live = np.zeros(self.rows, np.bool_)
        live[self.index.row] = True
        return live

    def rows_of_harness(self, digest: str) -> Rows:
        """All rows of one harness, superseded ones included."""
        # Imported here: it costs 0.1 s, which most readers of a run need not wait for.
        import pyarrow.compute as pc

        found = [np.empty(0, np.int64)]
        for number in self._of_harness.get(digest, ()):
            mask = pc.equal(self._table(number)["harness"].cast(pa.string()), digest)
            found.append(np.flatnonzero(mask.to_numpy()) + self._starts[number - 1])
        return np.concatenate(found)

    def tables(self, live: NDArray[np.bool_]) -> Iterator[Any]:
        """Each part as an Arrow table with only its live rows."""
        for number in range(1, self.count + 1):
            mask = live[self._starts[number - 1] : self._starts[number]]
            yield self._read(number).filter(pa.array(mask))

    def _count_files(self) -> int:
        numbers = sorted(
            int(match[1]) for path in self.folder.iterdir() if (match := _PART.fullmatch(path.name))
        )
        if numbers != list(range(1, len(numbers) + 1)):
            gap = next(n for n in range(1, len(numbers) + 2) if n not in numbers)
            raise RecordError(f"{self.path(gap)}: this part of the attempts is missing")
        return len(numbers)

    def _scan(
        self, number: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
        path = self.path(number)
        part = open_part(path)
        try:
            self.spent += usage_of(part, path)
            table = part.read(columns=["key_high", "key_low", "valid", "harness"])
        except (pa.ArrowException, OSError) as error:
            raise RecordError(f"{path}: damaged table of attempts: {error}") from error
        finally:
            part.close()
        for digest in table["harness"].unique().to_pylist():
            self._of_harness.setdefault(digest, []).append(number)
        self._starts.append(self.rows + table.num_rows)
        high, low, valid = (table[name].to_numpy() for name in ("key_high", "key_low", "valid"))
        return high, low, valid

    def _table(self, number: int) -> Any:
        if number not in self._tables:
            self._tables[number] = self._read(number)
        self._tables.move_to_end(number)
        while len(self._tables) > CACHED_PARTS:
            self._tables.popitem(last=False)
        return self._tables[number]

    def _read(self, number: int, columns: list[str] | None = None) -> Any:
        part = open_part(self.path(number))
        try:
            return part.read(columns=columns)
        except (pa.ArrowException, OSError) as error:
            raise RecordError(f"{self.path(number)}: damaged table: {error}") from error
        finally:
            part.close()
