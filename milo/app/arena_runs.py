"""What runs found on open problems: constructions for the archive, and the objective over time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from milo.app.inspect import locate, runs_below
from milo.core.errors import RecordError, RunError
from milo.core.objective import Step
from milo.store import RunReader
from milo.suites.arena.archive import Archive, Provenance
from milo.suites.arena.problems.catalogue import problems
from milo.suites.arena.problems.packing import Packed, unpacked
from milo.suites.arena.problems.problem import Rejected
from milo.views.objectives import moments_of, objective_courses
from milo.views.text import json_ready


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A construction that a verifier packed into its output, and where it comes from."""

    held: Packed
    provenance: Provenance


class Gathered(NamedTuple):
    """The archive, and a line for every run whose records can't be read."""

    archive: Archive
    faults: Sequence[str]


def gathered(folder: Path, places: Sequence[Path], named: Sequence[str] = ()) -> Gathered:
    """The archive with what the runs below these places, and those named, found entered.

    A construction whose verifier claims no more than the archive holds is passed over; the others
    are verified anew, and what is refused then is left out. Raises `RunError` for a name that
    means no run on open problems, and `RecordError` for an archive that can't be trusted.
    """
    archive, known, faults = Archive(folder), problems(), list[str]()
    paths = [run for place in places for run in runs_below(place)]
    paths += [run for name in named for run in _runs_of(name)]
    for found in chain.from_iterable(_readable(run, faults) for run in paths):
        best, problem = archive.best(found.held.problem), known[found.held.problem]
        if best is not None and problem.gain(found.held.value, over=best.value) <= 0:
            continue
        try:
            archive.add(problem.name, found.held.construction, found.provenance)
        except Rejected:
            continue
    return Gathered(archive, faults)


def _readable(run: Path, faults: list[str]) -> Iterator[Found]:
    """What a run found, as far as its records can be read; why no farther goes into `faults`."""
    try:
        yield from found_in(run)
    except RecordError as error:
        faults.append(f"run {run} was read in part: {error}")


def _runs_of(name: str) -> Sequence[Path]:
    """One run, by its path or unique name, or all runs below a folder."""
    path = Path(name)
    is_run = (path / "run.json").is_file()
    if not is_run and (below := runs_below(path)):
        return below
    run = locate(name, Path("runs"))
    with RunReader(run) as reader:
        if not _is_arena(reader.plan):
            raise RunError(f"run {run}", "a run on the suite arena", "one on another suite")
    return (run,)


def found_in(run: Path) -> Iterator[Found]:
    """Every construction that a verifier of the run packed into its output; none where the folder
    is no run on open problems."""
    try:
        reader = RunReader(run)
    except RunError:
        return
    with reader:
        if not _is_arena(reader.plan):
            return
        whose, scored = moments_of(reader)
        for outcome in reader.attempts.iter():
            if outcome.trace not in reader.traces:
                continue
            held = _held(reader.traces.get(outcome.trace).verifier_output)
            if held is None:
                continue
            harness, task = outcome.key.harness, outcome.key.task
            when = scored.get((harness, task))
            made = Provenance(
                source=run.name,
                when=when.time if when else time.time(),
                candidate=whose.get(harness, ""),
                attempt=str(outcome.key),
                task=task,
            )
            yield Found(held=held, provenance=made)


def _held(output: str) -> Packed | None:
    for line in output.splitlines():
        held = unpacked(line)
        if held is not None and held.problem in problems():
            return held
    return None


def _is_arena(plan: Mapping[str, object]) -> bool:
    suite = plan.get("suite")
    return isinstance(suite, dict) and suite.get("name") == "arena"


def curve_text(run: Path, *, as_json: bool) -> str:
    """The best so far of every problem against the time that the run was active: seconds, value,
    candidate."""
    with RunReader(run) as reader:
        courses = objective_courses(reader)
    if as_json:
        return json.dumps(json_ready(courses), indent=1)
    lines = [line for problem, course in courses.items() for line in _lines(problem, course)]
    return "\n".join(lines) or f"{run.name} holds no objective"


def _lines(problem: str, course: Sequence[Step]) -> list[str]:
    rows = [f"  {step.seconds:10.1f} s  {step.value!r}  {step.who}".rstrip() for step in course]
    return [problem, *rows]
