"""The order in which attempts get slots: a pure queue, without Ray and without time of its own.

Nearly finished evaluations go first, so that a verdict is not held up by work that was only
started; within an evaluation the longest expected attempt goes first, so that no straggler is
left for the end. An evaluation's standing improves with every attempt that others were given
meanwhile, so a large one is never starved.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from milo.core.attempt import AttemptKey

DEFAULT_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """One attempt that waits for a slot."""

    key: AttemptKey
    evaluation: int
    expected_s: float
    tries: int = 1


@dataclass(kw_only=True, slots=True)
class _Line:
    """The waiting attempts of one evaluation, and how often it was passed over."""

    heap: list[tuple[float, int, Work]] = field(default_factory=list)
    seconds: float = 0.0
    passed: float = 0.0

    @property
    def standing(self) -> float:
        """Smaller goes first: seconds of work left, less what was given to others meanwhile."""
        return self.seconds - self.passed


class SlotQueue:
    """Waiting attempts of all evaluations. Not thread-safe: one owner."""

    def __init__(self) -> None:
        self._lines: dict[int, _Line] = {}
        self._pushed = 0

    def __len__(self) -> int:
        return sum(len(line.heap) for line in self._lines.values())

    def push(self, work: Work) -> None:
        """Add an attempt to its evaluation's line."""
        line = self._lines.setdefault(work.evaluation, _Line())
        self._pushed += 1
        heapq.heappush(line.heap, (-work.expected_s, self._pushed, work))
        line.seconds += work.expected_s

    def pop(self) -> Work | None:
        """The attempt that should run next; None when nothing waits."""
        if not self._lines:
            return None
        chosen = min(self._lines, key=lambda number: (self._lines[number].standing, number))
        line = self._lines[chosen]
        work = heapq.heappop(line.heap)[2]
        line.seconds -= work.expected_s
        if not line.heap:
            del self._lines[chosen]
        for number, other in self._lines.items():
            if number != chosen:
                other.passed += work.expected_s / 2
        return work

    def clear(self) -> tuple[Work, ...]:
        """Empty the queue; what waited."""
        waiting = tuple(entry[2] for line in self._lines.values() for entry in line.heap)
        self._lines.clear()
        return waiting


class Durations:
    """Expected seconds of an attempt on a task: the running mean of what was recorded."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, float]] = {}
        self.count = 0
        self.total_s = 0.0

    def add(self, task: str, seconds: float) -> None:
        """One finished attempt."""
        n, total = self._sums.get(task, (0, 0.0))
        self._sums[task] = (n + 1, total + seconds)
        self.count += 1
        self.total_s += seconds

    @property
    def mean_s(self) -> float:
        """Mean seconds over all attempts; a default before the first."""
        return self.total_s / self.count if self.count else DEFAULT_SECONDS

    def expected(self, task: str) -> float:
        """Expected seconds on this task; the overall mean where it was never run."""
        n, total = self._sums.get(task, (0, 0.0))
        return total / n if n else self.mean_s
