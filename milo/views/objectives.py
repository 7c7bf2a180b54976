"""The objective against wall-clock of a run on tasks that have one: the best so far, problem by
problem, with the candidate whose attempt it was."""

from __future__ import annotations

from collections.abc import Iterator

from milo.core.events import CandidateProposed, CandidateScored, RunStarted
from milo.core.objective import Objective, Step, objective_in, ratchet
from milo.store import RunReader


def objective_courses(reader: RunReader) -> dict[str, tuple[Step, ...]]:
    """Steps by problem; seconds count from the run's first start, stops included.

    An attempt counts from the moment at which the journal scored its candidate on its task; one
    that isn't scored yet is left out. Reads every trace: nothing for a run of another kind of
    suite, whose reports hold no objective.
    """
    return ratchet(_timed(reader))


def _timed(reader: RunReader) -> Iterator[tuple[float, Objective, str]]:
    whose, scored = _moments(reader)
    for outcome in reader.attempts.iter():
        key = (outcome.key.harness, outcome.key.task)
        if not outcome.trace or key not in scored:
            continue
        result = objective_in(reader.traces.get(outcome.trace).report)
        if result is not None:
            yield scored[key], result, whose[outcome.key.harness]


def _moments(reader: RunReader) -> tuple[dict[str, str], dict[tuple[str, str], float]]:
    """The first candidate of each harness; when each harness was first scored on each task."""
    began = reader.created
    harnesses: dict[str, str] = {}
    whose: dict[str, str] = {}
    scored: dict[tuple[str, str], float] = {}
    for record in reader.records():
        match record.event:
            case RunStarted():
                began = record.time
            case CandidateProposed(candidate=candidate, harness=harness):
                harnesses[candidate] = harness
                whose.setdefault(harness, candidate)
            case CandidateScored(candidate=candidate, scores=scores):
                for task in scores:
                    scored.setdefault((harnesses[candidate], task), record.time - began)
            case _:
                pass
    return whose, scored
