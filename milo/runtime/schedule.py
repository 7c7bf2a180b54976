"""The order in which attempts get slots: a pure queue, without Ray and without time of its own.

Islands share the slots as flows share a line in fair queueing: each is charged the expected
seconds of what it was given, and the evaluation goes next whose island's account, with what is
left of it added, is the least: the one that would be finished first if all islands were served at
one pace. So neither long attempts nor many of them crowd another island out, an island that had
nothing to run saves nothing up, and nearly finished evaluations go first, so that a verdict is
not held up by work that was only started. Among an island's own, standing improves with every
attempt that its others were given meanwhile, so a large one is never starved. Within an
evaluation the longest expected attempt goes first, so that no straggler is left for the end.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from milo.core.attempt import AttemptKey
from milo.core.harness import Harness
from milo.core.task import Task

DEFAULT_SECONDS = 10.0


class Need(NamedTuple):
    """What an attempt wants of its host beside a slot: GPUs, of one of these types (any: empty)."""

    gpus: int = 0
    gpu_types: tuple[str, ...] = ()

    def fits(self, gpus: int, gpu_type: str) -> bool:
        """Whether that many GPUs of that type are enough."""
        right = not self.gpu_types or gpu_type.lower() in (kind.lower() for kind in self.gpu_types)
        return not self.gpus or (gpus >= self.gpus and right)


NOTHING_MORE = Need()


def need_of(harness: Harness, task: Task) -> Need:
    """What the harness and the task ask for together."""
    gpus = max(harness.manifest.gpus, task.setting.gpus)
    return Need(gpus, task.setting.gpu_types if gpus else ())


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """One attempt that waits for a slot, `since` a time on the pool's own clock, seconds."""

    key: AttemptKey
    evaluation: int
    expected_s: float
    since: float = 0.0
    island: str = ""
    need: Need = NOTHING_MORE
    tries: int = 1


@dataclass(kw_only=True, slots=True)
class _Line:
    """The waiting attempts of one evaluation with one need, and how often it was passed over."""

    island: str
    need: Need
    heap: list[tuple[float, int, Work]] = field(default_factory=list)
    seconds: float = 0.0
    passed: float = 0.0

    @property
    def standing(self) -> float:
        """Smaller goes first: seconds of work left, less what its island's others were given."""
        return self.seconds - self.passed


def anything(need: Need) -> bool:
    """A host that can run whatever waits."""
    return True


class SlotQueue:
    """Waiting attempts of all evaluations. Not thread-safe: one owner."""

    def __init__(self) -> None:
        self._lines: dict[tuple[int, Need], _Line] = {}
        self._accounts: dict[str, float] = {}
        self._pushed = 0

    def __len__(self) -> int:
        return sum(len(line.heap) for line in self._lines.values())

    def push(self, work: Work) -> None:
        """Add an attempt to its evaluation's line."""
        if all(line.island != work.island for line in self._lines.values()):
            self._return(work.island)
        line = self._lines.setdefault(
            (work.evaluation, work.need), _Line(island=work.island, need=work.need)
        )
        self._pushed += 1
        heapq.heappush(line.heap, (-work.expected_s, self._pushed, work))
        line.seconds += work.expected_s

    def _return(self, island: str) -> None:
        """An island that had nothing waiting is no better off than the least served of the rest."""
        own = self._accounts.get(island, 0.0)
        present = [self._accounts[line.island] for line in self._lines.values()]
        self._accounts[island] = max(own, min(present, default=own))

    def pop(self, fits: Callable[[Need], bool] = anything) -> Work | None:
        """The attempt that should run next where only some needs fit; None when nothing waits."""
        chosen = self._chosen(fits)
        if chosen is None:
            return None
        line = self._lines[chosen]
        work = heapq.heappop(line.heap)[2]
        line.seconds -= work.expected_s
        self._accounts[line.island] += work.expected_s
        if not line.heap:
            del self._lines[chosen]
        for key, other in self._lines.items():
            if key != chosen and other.island == line.island:
                other.passed += work.expected_s / 2
        return work

    def _chosen(self, fits: Callable[[Need], bool]) -> tuple[int, Need] | None:
        """Each island's best line, and of these the one that would be finished first."""
        best: dict[str, tuple[int, Need]] = {}
        for key, line in self._lines.items():
            if fits(line.need):
                own = best.setdefault(line.island, key)
                if (line.standing, key[0]) < (self._lines[own].standing, own[0]):
                    best[line.island] = key
        return min(best.values(), key=self._finish, default=None)

    def _finish(self, key: tuple[int, Need]) -> tuple[float, int]:
        line = self._lines[key]
        return self._accounts[line.island] + line.seconds, key[0]

    def clear(self) -> tuple[Work, ...]:
        """Empty the queue; what waited."""
        waiting = tuple(entry[2] for line in self._lines.values() for entry in line.heap)
        self._lines.clear()
        return waiting


class Durations:
    """Expected seconds of an attempt: the task's running mean, times the island's pace.

    An island's pace is how its attempts compare with what was expected of their tasks alone: its
    harnesses may all be slow, and it is charged for that.
    """

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, float]] = {}
        self._paces: dict[str, tuple[float, float]] = {}
        self.count = 0
        self.total_s = 0.0

    def add(self, task: str, seconds: float, n: int = 1, *, island: str = "") -> None:
        """`n` finished attempts of so many seconds each."""
        if island and self.count:
            took, expected = self._paces.get(island, (0.0, 0.0))
            self._paces[island] = (took + n * seconds, expected + n * self.expected(task))
        before, total = self._sums.get(task, (0, 0.0))
        self._sums[task] = (before + n, total + n * seconds)
        self.count += n
        self.total_s += n * seconds

    @property
    def mean_s(self) -> float:
        """Mean seconds over all attempts; a default before the first."""
        return self.total_s / self.count if self.count else DEFAULT_SECONDS

    def expected(self, task: str, island: str = "") -> float:
        """Expected seconds on this task; by the overall mean where it was never run."""
        n, total = self._sums.get(task, (0, 0.0))
        took, expected = self._paces.get(island, (0.0, 0.0))
        return (total / n if n else self.mean_s) * (took / expected if expected else 1.0)
