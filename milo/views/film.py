"""A run as a film: one small frame per journal record, from which the page replays the run.

The fold stays in Python. A frame holds what its record changed, as operations that only set,
append or merge; whoever applies the frames 0..n in order holds the state of the journal at n,
value by value, without knowing any rule of the search.

Operations (JSON arrays, the first item names them):

    tasks [id…]                    adds to the numbered table of tasks
    set [task…]                    adds to the numbered table of task sets (task numbers)
    run {field: value}             sets facts of the run: started, resumes, winner, ended
    new {candidate…}               a candidate entered the lineage
    score {candidate, split, …}    merges per-task scores; columns run along the task set
    judge {candidate, verdict, …}  sets a verdict
    objective candidate [[…]…]     raw objectives of its attempts: problem, value, start, target
    island id {field: value}       sets fields; ``members+`` appends to the members
    consult {consultation…}        the orchestrator answered
    move island round {move}       a move took effect
    void island round {move} why   a move can't take effect, and never will
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import fields
from typing import NamedTuple

from milo.core.attempt import Usage
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Consulted,
    Event,
    MoveApplied,
    MoveVoided,
    Record,
    RunEnded,
    RunResumed,
    RunStarted,
    WinnerFrozen,
)
from milo.core.fitness import fitness_on
from milo.core.objective import Objective
from milo.core.population import Population
from milo.core.topology import IslandState
from milo.views.spending import MomentsFold
from milo.views.text import json_ready

Operation = list[object]
Objectives = Callable[[str, Collection[str]], Sequence[Objective]]
"""The objectives of a harness (by its digest) on some tasks."""


class Frame(NamedTuple):
    """What one record changed: its `seq`, the active seconds of the run so far, its kind."""

    seq: int
    seconds: float
    kind: str
    operations: list[Operation]


class FilmFold:
    """Folds records, in journal order from the first on, into frames. One owner."""

    def __init__(self) -> None:
        self.population = Population()
        self._moments = MomentsFold()
        self._tasks: dict[str, int] = {}
        self._sets: dict[tuple[str, ...], int] = {}
        self._islands: dict[str, IslandState] = {}

    def apply(self, record: Record, objectives: Objectives | None = None) -> Frame:
        """Fold one record in; `objectives` looks those of a scored candidate up."""
        self.population.apply(record.event)
        self._moments.apply(record)
        operations: list[Operation] = []
        self._tell(record.event, operations)
        if objectives is not None and isinstance(record.event, CandidateScored):
            self._tell_objectives(record.event, objectives, operations)
        self._tell_islands(operations)
        seconds = self._moments.moments.active_s
        return Frame(record.seq, round(seconds, 3), record.event.kind, operations)

    def _tell(self, event: Event, out: list[Operation]) -> None:
        match event:
            case RunStarted():
                out.append(["run", {"started": self._started(event, out)}])
            case RunResumed():
                out.append(["run", {"resumes": self.population.resumes, "ended": None}])
            case WinnerFrozen() | RunEnded():
                name = "winner" if isinstance(event, WinnerFrozen) else "ended"
                out.append(["run", {name: json_ready(event)}])
            case CandidateProposed():
                out.append(["new", candidate_facts(event)])
            case CandidateScored():
                out.append(["score", self._scores(event, out)])
            case CandidateJudged():
                out.append(["judge", json_ready(event)])
            case Consulted():
                answer = json_ready(event.consultation)
                out.append(["consult", answer, usage_row(event.usage)])
            case MoveApplied():
                out.append(["move", event.island, event.round, json_ready(event.move)])
            case MoveVoided():
                move = json_ready(event.move)
                out.append(["void", event.island, event.round, move, event.reason])
            case _:
                pass

    def _tell_objectives(
        self, event: CandidateScored, objectives: Objectives, out: list[Operation]
    ) -> None:
        harness = self.population.lineage[event.candidate].harness
        found = [list(one) for one in objectives(harness, event.scores)]
        if found:
            out.append(["objective", event.candidate, found])

    def _started(self, event: RunStarted, out: list[Operation]) -> dict[str, object]:
        splits = {name: self._set(getattr(event, name), out) for name in SPLITS}
        return {"name": event.name, "model": event.model, "plan": json_ready(event.plan), **splits}

    def _scores(self, event: CandidateScored, out: list[Operation]) -> dict[str, object]:
        scores, tasks = list(event.scores.values()), tuple(event.scores)
        return {
            "candidate": event.candidate,
            "split": event.split,
            "set": self._set(tasks, out),
            "fitness": list(fitness_on(event.scores, tasks)) if tasks else None,
            "missing": list(event.missing),
            **{name: [getattr(score, name) for score in scores] for name in SCORE_FIELDS},
        }

    def _set(self, tasks: Sequence[str], out: list[Operation]) -> int:
        """The number of a task set; one that is new is told first."""
        key = tuple(tasks)
        if key not in self._sets:
            unknown = [task for task in key if task not in self._tasks]
            if unknown:
                first = len(self._tasks)
                self._tasks.update((task, first + i) for i, task in enumerate(unknown))
                out.append(["tasks", unknown])
            out.append(["set", [self._tasks[task] for task in key]])
            self._sets[key] = len(self._sets)
        return self._sets[key]

    def _tell_islands(self, out: list[Operation]) -> None:
        """Whatever the topology changed, told as the difference of the states it holds."""
        for name, state in self.population.topology.islands.items():
            former = self._islands.get(name)
            if former is state:
                continue
            changes = self._changes(former, state, out)
            if changes:
                out.append(["island", name, changes])
            self._islands[name] = state

    def _changes(
        self, former: IslandState | None, state: IslandState, out: list[Operation]
    ) -> dict[str, object]:
        changes: dict[str, object] = {}
        for field in fields(IslandState):
            value = getattr(state, field.name)
            before = None if former is None else getattr(former, field.name)
            if former is not None and before == value:
                continue
            if field.name == "search":
                changes["search"] = self._set(value, out)
            elif field.name == "members" and before and value[: len(before)] == before:
                changes["members+"] = list(value[len(before) :])
            else:
                changes[field.name] = json_ready(value)
        return changes


SPLITS = ("search", "validation", "test")
SCORE_FIELDS = ("n", "reward", "resolved", "tokens", "latency_s")
USAGE_FIELDS = tuple(field.name for field in fields(Usage))


def candidate_facts(event: CandidateProposed) -> dict[str, object]:
    """A candidate as the page lists it; its mutator's own words are a detail, asked for apart."""
    return {
        "candidate": event.candidate,
        "island": event.island,
        "round": event.round,
        "parents": list(event.parents),
        "harness": event.harness,
        "mutator": event.mutator,
        "title": event.change.title,
        "patch_lines": event.patch_lines,
        "tries": event.tries,
        "usage": usage_row(event.usage),
    }


def usage_row(usage: Usage) -> list[object]:
    """The fields of a usage in their own order."""
    return [getattr(usage, name) for name in USAGE_FIELDS]


def film_of(records: Iterable[Record]) -> list[Frame]:
    """All frames of a journal."""
    fold = FilmFold()
    return [fold.apply(record) for record in records]
