"""Wall-clock time that a run has used, over all its sessions: a fold of record times."""

from __future__ import annotations

from milo.core.events import Record, RunResumed, RunStarted


class WallClock:
    """Seconds spent in earlier sessions, and when this one began."""

    def __init__(self) -> None:
        self._before = 0.0
        self._began: float | None = None
        self._last = 0.0

    def apply(self, record: Record) -> None:
        """Fold one record in; the time between two sessions does not count."""
        if isinstance(record.event, RunStarted | RunResumed):
            if self._began is not None:
                self._before += self._last - self._began
            self._began = record.time
        self._last = record.time

    @property
    def zero(self) -> float | None:
        """The moment from which an uninterrupted run would have started; None before any start."""
        return None if self._began is None else self._began - self._before
