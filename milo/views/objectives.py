"""The objective against wall-clock of a run on tasks that have one: the best so far, problem by
problem, with the candidate whose attempt it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from milo.core.events import CandidateProposed, CandidateScored
from milo.core.objective import Objective, Step, objective_in, ratchet
from milo.store import RunReader


class Moments(NamedTuple):
    """The first candidate of each harness, and when (seconds since the epoch) the journal first
    scored a harness on a task."""

    whose: Mapping[str, str]
    scored: Mapping[tuple[str, str], float]


def objective_courses(reader: RunReader) -> dict[str, tuple[Step, ...]]:
    """Steps by problem; seconds count from the run's creation, stops included.

    An attempt counts from the moment at which the journal scored its candidate on its task; one
    that isn't scored yet is left out. Reads every trace, and finds nothing in a run on a suite
    whose reports hold no objective.
    """
    return ratchet(_timed(reader))


def _timed(reader: RunReader) -> Iterator[tuple[float, Objective, str]]:
    whose, scored = moments_of(reader)
    for outcome in reader.attempts.iter():
        when = scored.get((outcome.key.harness, outcome.key.task))
        if when is None or outcome.trace not in reader.traces:
            continue
        result = objective_in(reader.traces.get(outcome.trace).report)
        if result is not None:
            yield when - reader.created, result, whose[outcome.key.harness]


def moments_of(reader: RunReader) -> Moments:
    """One pass over the journal."""
    harnesses: dict[str, str] = {}
    whose: dict[str, str] = {}
    scored: dict[tuple[str, str], float] = {}
    for record in reader.records():
        match record.event:
            case CandidateProposed(candidate=candidate, harness=harness):
                harnesses[candidate] = harness
                whose.setdefault(harness, candidate)
            case CandidateScored(candidate=candidate, scores=scores):
                for task in scores:
                    scored.setdefault((harnesses[candidate], task), record.time)
            case _:
                pass
    return Moments(whose, scored)
