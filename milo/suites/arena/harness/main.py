"""Improve the construction in this folder by the schedule beside this file, until time is up.

Reads problem.json ({"problem", "most", "seed"}) and construction.json (the arena's JSON), and
writes construction.json anew whenever a better one is found. Prints seconds and value of each.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

import numpy as np

from milo.suites.arena.optimizer.moves import MOVES
from milo.suites.arena.optimizer.search import Schedule, begin, run, wall_clock
from milo.suites.arena.problems.catalogue import candidate_of, parse, problems
from milo.suites.arena.problems.problem import Array, Problem, verify

MARGIN_S = 1.0
"""Left for ending and for the last write."""
WHERE, WHAT = Path("construction.json"), Path("problem.json")
SMOKE_S = 0.5


def schedule_beside() -> Schedule:
    """The list SCHEDULE of schedule.py."""
    found: Schedule = runpy.run_path(str(Path(__file__).with_name("schedule.py")))["SCHEDULE"]
    return found


def seconds_left(environment: dict[str, str], now: float) -> float:
    """Seconds until the deadline, less the margin."""
    return float(environment["MILO_DEADLINE"]) - now - MARGIN_S


def improve(schedule: Schedule, seconds: float) -> float:
    """Search from the construction here; the best value."""
    given = json.loads(WHAT.read_text(encoding="utf-8"))
    problem = problems()[given["problem"]]
    start = verify(problem, parse(WHERE.read_text(encoding="utf-8"))).construction
    state = begin(
        problem, start, seed=given["seed"], seconds=seconds, most=given["most"], clock=wall_clock
    )
    print(f"{problem.name} starts at {state.best!r}", flush=True)
    state.on_record = lambda at, value, x: keep(problem, at, value, x)
    run(state, schedule, MOVES)
    return state.best


def keep(problem: Problem, at: float, value: float, x: Array) -> None:
    """Write a construction in one stroke, and say so."""
    partial = WHERE.with_suffix(".part")
    partial.write_text(json.dumps(candidate_of(problem, x)), encoding="utf-8")
    partial.replace(WHERE)
    print(f"{at:.2f} {value!r}", flush=True)


def smoke(schedule: Schedule) -> None:
    """Run the schedule on a small function for half a second; raises where it is wrong."""
    problem = problems()["first-autocorrelation-inequality"]
    state = begin(problem, np.ones(8), seed=0, seconds=SMOKE_S, most=16, clock=wall_clock)
    unknown = [entry["move"] for entry in schedule if entry["move"] not in MOVES]
    if unknown or not schedule:
        raise ValueError(f"expected moves among {', '.join(MOVES)}, found {unknown or 'none'}")
    run(state, schedule, MOVES)


def main(arguments: list[str]) -> None:
    """Search, or with --smoke prove that the schedule runs."""
    import time

    if "--smoke" in arguments:
        smoke(schedule_beside())
        return
    best = improve(schedule_beside(), seconds_left(dict(os.environ), time.time()))
    print(f"ends at {best!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
