"""The view without a terminal: one plain line per event, flushed, for logs and pipes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from milo.core.events import Record
from milo.views import text
from milo.views.lines import sentence
from milo.views.spending import MomentsFold
from milo.views.view import Progress


class PlainView:
    """Prints to `stream`. Progress gets a line at most every `every_s` seconds of the run.

    A stream that takes nothing more (its reader has gone, its disk is full) ends no search: what
    it misses is on record.
    """

    def __init__(self, stream: TextIO, every_s: float = 30.0) -> None:
        self._stream = stream
        self._every_s = every_s
        self._clock = MomentsFold()
        self._next_s = every_s

    def start(self, title: str, past: Sequence[Record] = ()) -> None:
        """Say the title; a resumed run's past is counted, not repeated."""
        self._print(title)
        if past:
            for record in past:
                self._clock.apply(record)
            self._print(f"({text.plural(len(past), 'earlier event')} on record)")

    def update(self, records: Sequence[Record]) -> None:
        """One line per record, with the time that the run was active."""
        for record in records:
            self._clock.apply(record)
            active_s = self._clock.moments.active_s
            self._print(f"[{text.clock(active_s)}] {sentence(record.event)}")

    def progress(self, snapshot: Progress) -> None:
        """A line about the whole now and then, so that a log never looks dead."""
        if snapshot.seconds < self._next_s:
            return
        self._next_s = snapshot.seconds + self._every_s
        spent = snapshot.spent
        self._print(
            f"… {text.clock(snapshot.seconds)}: {spent.attempts} attempts, "
            f"{text.count(spent.tokens)} tokens, slots {snapshot.slots_busy}/"
            f"{snapshot.slots_total} busy, {snapshot.queued} queued"
        )

    def message(self, words: str) -> None:
        """One line."""
        self._print(words)

    def stop(self) -> None:
        """Nothing to give back."""

    def _print(self, line: str) -> None:
        with suppress(OSError):
            print(text.one_line(line), file=self._stream, flush=True)
