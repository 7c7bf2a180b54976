"""What a tracker plots, as a pure fold of the journal: one point per telling record.

A point's step is the record's `seq`, so a tracker that knows its last step knows exactly which
points it still lacks, however the run was stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from milo.core.attempt import Usage
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Consulted,
    Event,
    FrameFixed,
    IslandFounded,
    MoveApplied,
    Record,
    RoundEnded,
    Verdict,
)
from milo.core.fitness import TaskScore
from milo.core.moves import Curriculum, Speciate
from milo.core.population import Population
from milo.core.topology import best_member
from milo.views.fronts import Fronts
from milo.views.spending import MomentsFold


class Point(NamedTuple):
    """Values at one step."""

    step: int
    values: Mapping[str, float]


class PointFold:
    """Folds records into points. One owner; records come in journal order from the first on.

    Attempts and tokens count what scored, once per harness and task, beside what mutators and
    the orchestrator used. Coverage is the share of scored tasks among those that should have been.
    """

    def __init__(self) -> None:
        self.population = Population()
        self._moments = MomentsFold()
        self._fronts = Fronts(self.population)
        self._best: dict[str, float] = {}
        self._gains: dict[str, float] = {}
        self._paid: dict[tuple[str, str], TaskScore] = {}
        self._attempts = 0
        self._target_tokens = 0.0
        self._usage = Usage()
        self._interventions = 0
        self._scored = 0
        self._missing = 0

    @property
    def seconds(self) -> float:
        """Active seconds of the run so far."""
        return self._moments.moments.active_s

    def apply(self, record: Record) -> Point | None:
        """Fold one record in; the point that it makes, if it makes one."""
        event = record.event
        self._moments.apply(record)
        self.population.apply(event)
        self._count(event)
        changed = self._changed_island(event)
        if changed is None:
            return None
        values = {**self._whole(), **(self._island(changed) if changed else {})}
        values["run/seconds"] = self.seconds
        if isinstance(event, CandidateJudged):
            values[f"island/{event.island}/gain"] = event.gain
        return Point(record.seq, values)

    def _count(self, event: Event) -> None:
        match event:
            case CandidateProposed():
                self._usage += event.usage
            case Consulted():
                self._usage += event.usage
                self._interventions += len(event.consultation.moves)
            case CandidateScored():
                self._scored += len(event.scores)
                self._missing += len(event.missing)
                self._pay(event)
            case _:
                pass

    def _pay(self, event: CandidateScored) -> None:
        harness = self.population.lineage[event.candidate].harness
        for task, score in event.scores.items():
            known = self._paid.get((harness, task))
            if known is None or score.n > known.n:
                self._attempts += score.n - (known.n if known else 0)
                self._target_tokens += score.n * score.tokens
                self._target_tokens -= known.n * known.tokens if known else 0.0
                self._paid[harness, task] = score

    def _changed_island(self, event: Event) -> str | None:
        """The island whose figures the event changed, "" for none in particular, None for none."""
        match event:
            case CandidateJudged():
                self._judge(event)
                return event.island
            case RoundEnded():
                return event.island
            case FrameFixed() | IslandFounded():
                self._gains[event.island] = 0.0
                self._settle(event.island)
                return event.island
            case MoveApplied():
                if isinstance(event.move, Speciate | Curriculum):
                    self._settle(event.island)
                return event.island
            case Consulted():
                return ""
            case _:
                return None

    def _judge(self, event: CandidateJudged) -> None:
        state = self.population.topology[event.island]
        if event.verdict is Verdict.ADMITTED:
            self._gains[event.island] = self._gains.get(event.island, 0.0) + event.gain
        fitness = self.population.lineage[event.candidate].fitness("search", state.search)
        if event.verdict.is_member and fitness is not None:
            self._best[event.island] = max(self._best.get(event.island, 0.0), fitness.accuracy)
            self._fronts.joined(event.island, event.candidate)

    def _settle(self, island: str) -> None:
        """Look an island's best up anew: its members or its search set have changed."""
        state = self.population.topology[island]
        self._fronts.changed(island)
        known = [m for m in state.members if m in self.population.lineage]
        whole = bool(known) and len(known) == len(state.members)
        best = best_member(state, self.population.lineage) if whole else ""
        fitness = self.population.lineage[best].fitness("search", state.search) if best else None
        self._best.pop(island, None)
        if fitness is not None:
            self._best[island] = fitness.accuracy

    def _island(self, island: str) -> dict[str, float]:
        state = self.population.topology[island]
        values = {
            f"island/{island}/round": float(state.round),
            f"island/{island}/best_validation": state.best_validation,
            f"island/{island}/stall": float(state.stall),
            f"island/{island}/gain_total": self._gains.get(island, 0.0),
            f"island/{island}/members": float(len(state.members)),
        }
        if island in self._best:
            values[f"island/{island}/accuracy"] = self._best[island]
        volume = self._fronts.of(island)
        if volume is not None:
            values[f"island/{island}/hypervolume"] = volume
        return values

    def _whole(self) -> dict[str, float]:
        states = self.population.topology.islands.values()
        volume, asked = self._fronts.whole, self._scored + self._missing
        return {
            **({"population/hypervolume": volume} if volume is not None else {}),
            **({"run/coverage": self._scored / asked} if asked else {}),
            "population/best_validation": max((s.best_validation for s in states), default=0.0),
            "population/best_accuracy": max(self._best.values(), default=0.0),
            "population/candidates": float(len(self.population.lineage)),
            "population/islands": float(len(states)),
            "orchestrator/interventions": float(self._interventions),
            "spent/attempts": float(self._attempts),
            "spent/tokens": self._target_tokens + self._usage.tokens,
        }


def tracker_points(records: Iterable[Record]) -> Iterator[Point]:
    """All points of a journal, by rising step."""
    fold = PointFold()
    for record in records:
        point = fold.apply(record)
        if point is not None:
            yield point
