"""The arena's optimizers from a constant or random start: the best reached, and when.

``scripts/bench arena`` runs every problem that has a bar for 30 minutes each, on one core each,
two at a time. ``--problems NAME … --minutes M --seed S --parallel P`` choose; ``--from FILE``
starts from a construction (the arena's JSON) or one that comes with MILO (its name); ``--to DIR``
keeps curves and constructions; ``--cpu`` counts the minutes on the processor's clock, for a
machine that others use too; ``--speed`` tells the speed of the objectives and ends.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from milo.suites.arena.exact import prove
from milo.suites.arena.harness.seeds import text_of
from milo.suites.arena.optimizer.factory import landscape_of
from milo.suites.arena.optimizer.landscape import Smooth
from milo.suites.arena.optimizer.moves import MOVES
from milo.suites.arena.optimizer.search import begin, run, wall_clock
from milo.suites.arena.problems.catalogue import candidate_of, problems
from milo.suites.arena.problems.problem import Array, Problem, verify
from milo.suites.arena.tasks import PUBLISHED, published, start_of

BARS = {
    "erdos-min-overlap": 0.38095,
    "first-autocorrelation-inequality": 1.5100,
    "third-autocorrelation-inequality": 1.4700,
    "circle-packing": 2.6350,
}
MOST = 1200
AT_MOST_MS = 100.0
"""What objective and subgradient on 30,000 points may take."""


class Job(NamedTuple):
    """One search."""

    problem: str
    seconds: float
    seed: int
    start: str
    to: str
    cpu: bool


class Moment(NamedTuple):
    """A new best: seconds on the job's clock, seconds on the wall, the value."""

    at: float
    wall: float
    value: float


class Result(NamedTuple):
    """Where a search began, what it reached, and how."""

    job: Job
    began: float
    reached: Array
    curve: tuple[Moment, ...]


def schedule() -> list[dict[str, object]]:
    """The seed for long searches."""
    scope: dict[str, object] = {}
    exec(text_of("harness", "schedules", "multiresolution.py"), scope)  # our own file
    found = scope["SCHEDULE"]
    assert isinstance(found, list)
    return found


def start_for(job: Job, problem: Problem) -> Array:
    """The construction that was asked for, or the first start after the published ones: constant
    for functions, random else."""
    if not job.start:
        return start_of(problem, len(PUBLISHED.get(job.problem, ()))).construction
    if job.start in PUBLISHED.get(job.problem, ()):
        return published(job.start)
    return verify(problem, json.loads(Path(job.start).read_text(encoding="utf-8"))).given


def search(job: Job) -> Result:
    """Run the full schedule on one problem."""
    problem = problems()[job.problem]
    clock = time.process_time if job.cpu else wall_clock
    start = start_for(job, problem)
    state = begin(problem, start, seed=job.seed, seconds=job.seconds, most=MOST, clock=clock)
    began, curve, begun = state.best, [], wall_clock()
    state.on_record = lambda at, value, _: curve.append(Moment(at, wall_clock() - begun, value))
    run(state, schedule(), MOVES)
    if job.to:
        keep(Path(job.to), problem, job, state.best_x, curve)
    return Result(job, began, state.best_x, tuple(curve))


def keep(folder: Path, problem: Problem, job: Job, x: Array, curve: list[Moment]) -> None:
    """Write the construction (as `milo arena verify` reads it) with its curve."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {"problem": job.problem, **candidate_of(problem, x), "curve": curve}
    (folder / f"{job.problem}-{job.seed}.json").write_text(json.dumps(data) + "\n")


def speed() -> str:
    """Objective and subgradient on 30,000 points, in milliseconds of CPU; the bar beside them."""
    x = np.random.default_rng(0).random(30_000)
    lines = []
    for name in PUBLISHED:
        landscape = landscape_of(name)
        assert isinstance(landscape, Smooth)
        point = landscape.repair(x)
        landscape.smoothed(point, float("inf"))
        begun = time.process_time()
        for _ in range(10):
            landscape.smoothed(point, float("inf"))
        each = (time.process_time() - begun) * 100
        lines.append(f"  {name}: {each:.1f} ms ({'met' if each < AT_MOST_MS else 'missed'})")
    head = f"objective and subgradient on 30,000 points (bar {AT_MOST_MS:g} ms)"
    return "\n".join([head, *lines])


def row(result: Result) -> str:
    """What was reached against the start, the bar and every published value; then the curve."""
    problem = problems()[result.job.problem]
    reached = problem.direct(result.reached)
    clock = "CPU" if result.job.cpu else "wall"
    lines = [f"{problem.name}: {result.began:.10g} -> {reached!r} ({len(result.reached)} values)"]
    gain, asked = problem.gain(reached, result.began), problem.minimum_improvement
    lines.append(f"  over the start {gain:.3e} (the arena asks for {asked:g} of a new leader)")
    bar = BARS.get(problem.name)
    if bar is not None and not result.job.start:
        met = next((m for m in result.curve if problem.gain(m.value, bar) >= 0), None)
        when = f"met after {met.at:.0f} s {clock}, {met.wall:.0f} s wall" if met else "missed"
        lines.append(f"  bar {bar:g}: {when}")
    for one in problem.published:
        lines.append(f"  against {one.who} {one.printed}: {problem.gain(reached, one.value):+.3e}")
    best = problem.best_published
    if best is not None and problem.gain(reached, best.value) > 0:
        found = prove(problem, candidate_of(problem, result.reached))
        lines.append(
            f"  exact {float(found.worst(problem))!r}, proof: {found.beats(problem, best)}"
        )
    return "\n".join([*lines, f"  {clock}: {', '.join(_picked(result.curve))}"])


def _picked(curve: tuple[Moment, ...]) -> list[str]:
    """The curve at a dozen moments spaced by factors."""
    picked: list[str] = []
    following = 0.5
    for now, after in zip(curve, (*curve[1:], None), strict=True):
        if after is None or after.at > following:
            picked.append(f"{now.at:.1f} s {now.value:.9g}")
            following = max(following, now.at) * 1.8
    return picked


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=list(BARS), choices=list(problems()))
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="start", default="")
    parser.add_argument("--to", default="")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--speed", action="store_true")
    args = parser.parse_args()
    print(speed(), flush=True)
    if args.speed:
        return
    jobs = [
        Job(name, args.minutes * 60, args.seed, args.start, args.to, args.cpu)
        for name in args.problems
    ]
    # A search has one core; a library's threads would take the other one's.
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    spawning = multiprocessing.get_context("spawn")
    with spawning.Pool(args.parallel, maxtasksperchild=1) as pool:
        for result in pool.imap(search, jobs, chunksize=1):
            print(row(result), flush=True)


if __name__ == "__main__":
    main()
