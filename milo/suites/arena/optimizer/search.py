"""The state of one search, and running a schedule of moves on it until the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from milo.suites.arena.optimizer.factory import landscape_of
from milo.suites.arena.optimizer.landscape import Landscape
from milo.suites.arena.problems.catalogue import candidate_of
from milo.suites.arena.problems.problem import Array, Problem, Rejected, verify

Clock = Callable[[], float]
IDLE_S = 0.05
"""A move that ends sooner than this had nothing to do; a round of such moves ends the search."""


@dataclass(kw_only=True, slots=True)
class State:
    """One search: where it is, the best verified construction, and the time that is left.

    `x` is what the next move starts from; `best_x` has the problem's value `best`. Owned by one
    thread. `on_record` is told of each new best with the seconds since the start.
    """

    problem: Problem
    landscape: Landscape
    rng: np.random.Generator
    clock: Clock
    deadline: float
    x: Array
    best_x: Array
    best: float
    most: int
    started: float
    on_record: Callable[[float, float, Array], None] = field(default=lambda *_: None)

    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - self.clock()

    def value(self, x: Array) -> float:
        """What moves minimise."""
        return self.landscape.value(x)

    def offer(self, x: Array) -> bool:
        """Keep x as the best if both verifiers say so; whether it was kept."""
        if self.problem.gain(self._quick(x), self.best) <= 0:
            return False
        try:
            found = verify(self.problem, candidate_of(self.problem, x))
        except Rejected:
            return False
        if self.problem.gain(found.value, self.best) <= 0:
            return False
        self.best, self.best_x = found.value, x
        self.on_record(self.clock() - self.started, self.best, x)
        return True

    def _quick(self, x: Array) -> float:
        """The verifier's figure without its rules, or the worst there is."""
        try:
            return self.problem.fast(x)
        except (Rejected, ValueError):
            return -self.problem.sign * float("inf")


Move = Callable[..., None]
Schedule = Sequence[Mapping[str, Any]]


def begin(
    problem: Problem, start: Array, *, seed: int, seconds: float, most: int, clock: Clock
) -> State:
    """A search from a construction that the verifier accepts; raises `Rejected` where it doesn't.

    `most` is the longest function that it may make.
    """
    found = verify(problem, candidate_of(problem, start))
    landscape, now = landscape_of(problem.name), clock()
    return State(
        problem=problem,
        landscape=landscape,
        rng=np.random.default_rng(seed),
        clock=clock,
        deadline=now + seconds,
        x=landscape.repair(found.construction),
        best_x=found.construction,
        best=found.value,
        most=most,
        started=now,
    )


def run(state: State, schedule: Schedule, moves: Mapping[str, Move]) -> None:
    """Make the schedule's moves in turn, again and again, until the deadline or nothing is done.

    Each entry names its `move`; `share` is its part of the time of a round, the rest are its
    parameters. Raises `KeyError` for an unknown move and `TypeError` for an unknown parameter.
    """
    shares = sum(float(entry.get("share", 1.0)) for entry in schedule)
    round_s = max(state.left() / 3, 2.0)
    while state.left() > 0:
        begun = state.clock()
        for entry in schedule:
            if state.left() <= 0:
                return
            given = {k: v for k, v in entry.items() if k not in ("move", "share")}
            seconds = round_s * float(entry.get("share", 1.0)) / shares
            moves[entry["move"]](state, min(seconds, state.left()), **given)
        if state.clock() - begun < IDLE_S * len(schedule):
            return


def wall_clock() -> float:
    """Seconds on a clock that never goes back."""
    return time.monotonic()
