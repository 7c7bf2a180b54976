"""Improve the construction in this folder by the schedule beside this file, until time is up.

Reads problem.json ({"problem", "most", "seed"}) and construction.json (the arena's JSON), and
writes construction.json anew whenever a better one is found. Ends two seconds before the
attempt does. Prints seconds and value of each that
is better by more than rounding. schedule.py may bring moves of its own: functions
``name(state, seconds, …)``.
"""

from __future__ import annotations

import inspect
import json
import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from milo.suites.arena.optimizer.moves import MOVES
from milo.suites.arena.optimizer.search import Move, Schedule, State, begin, run, wall_clock
from milo.suites.arena.problems.catalogue import candidate_of, parse, problems
from milo.suites.arena.problems.problem import Array, Problem, verify

MARGIN_S = 2.0
"""Left for ending and for the last write."""
WHERE, WHAT = Path("construction.json"), Path("problem.json")
SMOKE_S = 0.5
LEADING = ("state", "seconds")
NEWS = 1e-11
"""Relative gain from which a better construction is told of."""


class Program(NamedTuple):
    """A schedule, and all the moves that it may name."""

    schedule: Schedule
    moves: Mapping[str, Move]


def program_beside() -> Program:
    """SCHEDULE of schedule.py, and the moves of the optimizer with those of that file."""
    scope = runpy.run_path(str(Path(__file__).with_name("schedule.py")))
    own = {
        name: one
        for name, one in scope.items()
        if inspect.isfunction(one) and tuple(inspect.signature(one).parameters)[:2] == LEADING
    }
    return Program(scope["SCHEDULE"], {**MOVES, **own})


def seconds_left(environment: dict[str, str], now: float) -> float:
    """Seconds until the deadline, less the margin."""
    return float(environment["MILO_DEADLINE"]) - now - MARGIN_S


def improve(program: Program, seconds: float) -> float:
    """Search from the construction here; the best value."""
    given = json.loads(WHAT.read_text(encoding="utf-8"))
    problem = problems()[given["problem"]]
    start = verify(problem, parse(WHERE.read_text(encoding="utf-8"))).given
    state = begin(
        problem, start, seed=given["seed"], seconds=seconds, most=given["most"], clock=wall_clock
    )
    print(f"{problem.name} starts at {state.best!r}", flush=True)
    print(f"searching for {seconds:.1f} s; {MARGIN_S:g} s of the attempt are kept for ending")
    keeper = Keeper(problem, state.best)
    state.on_record = keeper.keep
    run(state, program.schedule, program.moves)
    return state.best


class Keeper:
    """Writes what is found, and says so where it is news."""

    def __init__(self, problem: Problem, said: float) -> None:
        self._problem = problem
        self._said = said

    def keep(self, at: float, value: float, x: Array) -> None:
        """Write a construction in one stroke."""
        partial = WHERE.with_suffix(".part")
        partial.write_text(json.dumps(candidate_of(self._problem, x)), encoding="utf-8")
        partial.replace(WHERE)
        if self._problem.gain(value, over=self._said) > NEWS * abs(value):
            self._said = value
            print(f"{at:.2f} {value!r}", flush=True)


def smoke(program: Program) -> None:
    """Make every move once, on a small function for half a second; raises where one is wrong."""
    problem = problems()["first-autocorrelation-inequality"]
    unknown = [e.get("move") for e in program.schedule if e.get("move") not in program.moves]
    if unknown or not program.schedule:
        known = ", ".join(program.moves)
        raise ValueError(f"expected moves among {known}, found {unknown or 'none'}")
    for entry in program.schedule:
        state = _small(problem, SMOKE_S / len(program.schedule))
        run(state, [entry], program.moves)


def _small(problem: Problem, seconds: float) -> State:
    return begin(problem, np.ones(8), seed=0, seconds=seconds, most=16, clock=wall_clock)


def main(arguments: list[str]) -> None:
    """Search, or with --smoke prove that the schedule runs."""
    import time

    if "--smoke" in arguments:
        smoke(program_beside())
        return
    best = improve(program_beside(), seconds_left(dict(os.environ), time.time()))
    print(f"ends at {best!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
