"""The objective against wall-clock of a run on tasks that have one: the best so far, problem by
problem, with the candidate whose attempt it was.

The clock is that of the budget, the log and the replay page: it begins with the first record and
stands still between a stop and its resume.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from milo.core.events import CandidateProposed, CandidateScored
from milo.core.objective import Objective, Step, objective_in, ratchet
from milo.store import RunReader
from milo.views.spending import MomentsFold


class Moment(NamedTuple):
    """When something was recorded: seconds since the epoch, and active seconds of the run."""

    time: float
    active_s: float


class Moments(NamedTuple):
    """The first candidate of each harness, and when the journal first scored a harness on a
    task."""

    whose: Mapping[str, str]
    scored: Mapping[tuple[str, str], Moment]


def objective_courses(reader: RunReader) -> dict[str, tuple[Step, ...]]:
    """Steps by problem; seconds are those that the run was active.

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
            yield when.active_s, result, whose[outcome.key.harness]


def moments_of(reader: RunReader) -> Moments:
    """One pass over the journal."""
    harnesses: dict[str, str] = {}
    whose: dict[str, str] = {}
    scored: dict[tuple[str, str], Moment] = {}
    clock = MomentsFold()
    for record in reader.records():
        clock.apply(record)
        match record.event:
            case CandidateProposed(candidate=candidate, harness=harness):
                harnesses[candidate] = harness
                whose.setdefault(harness, candidate)
            case CandidateScored(candidate=candidate, scores=scores):
                now = Moment(record.time, clock.moments.active_s)
                for task in scores:
                    scored.setdefault((harnesses[candidate], task), now)
            case _:
                pass
    return Moments(whose, scored)
