"""Dollars spent by records of the journal: `costs.jsonl` beside the records.

The journal holds no prices of attempts, and summing millions of them at every point would cost
more than the search. So whoever follows a run notes what its ledger says, and a resumed run's
curve is drawn from the note. Losing the file loses the past of one curve.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from contextlib import suppress
from pathlib import Path

NAME = "costs.jsonl"


class CostNote:
    """Dollars at record numbers, which rise. One owner writes."""

    def __init__(self, path: Path) -> None:
        self._path = path / NAME
        self._seqs: list[int] = []
        self._dollars: list[float] = []
        self._read()

    @property
    def last(self) -> int:
        """The newest record number with a figure; -1 where there is none."""
        return self._seqs[-1] if self._seqs else -1

    def at(self, seq: int) -> float | None:
        """The dollars that were spent when a record was written, as far as they were noted."""
        place = bisect_right(self._seqs, seq)
        return self._dollars[place - 1] if place else None

    def note(self, seq: int, dollars: float) -> None:
        """Keep a figure for a record that is newer than all before, where it is news."""
        if seq <= self.last or (self._dollars and self._dollars[-1] == dollars):
            return
        # A full disk may cost the past of this curve, never the search.
        with suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps([seq, dollars])}\n")
        self._seqs.append(seq)
        self._dollars.append(dollars)

    def _read(self) -> None:
        """Read what earlier processes wrote; a torn line, or one out of order, is left out."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return
        if data and not data.endswith(b"\n"):
            with suppress(OSError), self._path.open("ab") as file:
                file.write(b"\n")
        for line in data.splitlines():
            try:
                seq, dollars = json.loads(line)
                seq, dollars = int(seq), float(dollars)
            except (ValueError, TypeError):
                continue
            if seq > self.last and math.isfinite(dollars):
                self._seqs.append(seq)
                self._dollars.append(dollars)
