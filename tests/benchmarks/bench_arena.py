"""The arena's optimizers from a constant or random start: the best reached, and when.

``scripts/bench arena`` runs every problem that has a bar for 30 minutes each, on one core each,
two at a time. ``--problems NAME … --minutes M --seed S`` choose; ``--from FILE`` starts from a
construction (the arena's JSON); ``--to DIR`` keeps curves and constructions.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from milo.suites.arena.harness.seeds import text_of
from milo.suites.arena.optimizer.moves import MOVES
from milo.suites.arena.optimizer.search import begin, run, wall_clock
from milo.suites.arena.problems.catalogue import candidate_of, problems
from milo.suites.arena.tasks import PUBLISHED, start_of

BARS = {
    "erdos-min-overlap": 0.38095,
    "first-autocorrelation-inequality": 1.5100,
    "third-autocorrelation-inequality": 1.4700,
    "circle-packing": 2.6350,
}
MOST = 1200


class Job(NamedTuple):
    """One search."""

    problem: str
    seconds: float
    seed: int
    start: str
    to: str


class Result(NamedTuple):
    """Where it began, what it reached, and the curve of (seconds, value)."""

    problem: str
    began: float
    reached: float
    curve: tuple[tuple[float, float], ...]


def search(job: Job) -> Result:
    """Run the full schedule on one problem."""
    problem = problems()[job.problem]
    if job.start:
        value = json.loads(Path(job.start).read_text(encoding="utf-8"))[problem.field]
        start = problem.read(value)
    else:
        # The first start after the published ones: constant for functions, random else.
        start = start_of(problem, len(PUBLISHED.get(job.problem, ()))).construction
    state = begin(problem, start, seed=job.seed, seconds=job.seconds, most=MOST, clock=wall_clock)
    began, curve = state.best, []
    state.on_record = lambda at, value, _: curve.append((at, value))
    scope: dict[str, object] = {}
    exec(text_of("harness", "schedules", "full.py"), scope)  # our own file
    schedule = scope["SCHEDULE"]
    assert isinstance(schedule, list)
    run(state, schedule, MOVES)
    if job.to:
        folder = Path(job.to)
        folder.mkdir(parents=True, exist_ok=True)
        data = {"problem": job.problem, **candidate_of(problem, state.best_x), "curve": curve}
        (folder / f"{job.problem}-{job.seed}.json").write_text(json.dumps(data) + "\n")
    return Result(job.problem, began, state.best, tuple(curve))


def speed() -> str:
    """Objective and subgradient on 30,000 points."""
    from milo.suites.arena.optimizer.factory import landscape_of
    from milo.suites.arena.optimizer.landscape import Smooth

    x = np.random.default_rng(0).random(30_000)
    lines = []
    for name in PUBLISHED:
        landscape = landscape_of(name)
        assert isinstance(landscape, Smooth)
        point = landscape.repair(x)
        landscape.smoothed(point, float("inf"))
        begun = time.perf_counter()
        for _ in range(10):
            landscape.smoothed(point, float("inf"))
        lines.append(f"{name}: {(time.perf_counter() - begun) * 100:.1f} ms")
    return "objective and subgradient, 30,000 points: " + "; ".join(lines)


def main() -> None:
    """Run and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=list(BARS), choices=list(problems()))
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="start", default="")
    parser.add_argument("--to", default="")
    parser.add_argument("--parallel", type=int, default=2)
    args = parser.parse_args()
    print(speed(), flush=True)
    jobs = [Job(name, args.minutes * 60, args.seed, args.start, args.to) for name in args.problems]
    with multiprocessing.Pool(args.parallel) as pool:
        for result in pool.imap(search, jobs, chunksize=1):
            print(row(result), flush=True)


def row(result: Result) -> str:
    """One line of the table, with the curve at a few moments."""
    problem = problems()[result.problem]
    best, bar = problem.best_published, BARS.get(result.problem)
    met = "" if bar is None else f"; bar {bar:g} {_met(problem.gain(result.reached, bar))}"
    known = "" if best is None else f"; {best.who} {best.value:.10g}"
    picks = result.curve[:: max(1, len(result.curve) // 8)]
    curve = ", ".join(f"{at:.0f} s {value:.8g}" for at, value in picks)
    return f"{result.problem}: {result.began:.8g} -> {result.reached:.12g}{met}{known}\n  {curve}"


def _met(gain: float) -> str:
    return "met" if gain >= 0 else f"missed by {-gain:.2g}"


if __name__ == "__main__":
    main()
