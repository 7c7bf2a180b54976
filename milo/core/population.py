"""The whole run as one fold: run facts, topology, lineage, consultations, winner, end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from milo.core.events import (
    Consulted,
    Event,
    Record,
    RunEnded,
    RunResumed,
    RunStarted,
    WinnerFrozen,
)
from milo.core.lineage import Lineage
from milo.core.moves import Consultation, Move, Speciate, islands_touched
from milo.core.topology import Topology


class Population:
    """State of a run as its journal tells it; what `status`, the report and a resume read."""

    def __init__(self) -> None:
        self.lineage = Lineage()
        self.topology = Topology()
        self.consultations: list[Consulted] = []
        self.started: RunStarted | None = None
        self.resumes = 0
        self.overrides: tuple[str, ...] = ()
        self.winner: WinnerFrozen | None = None
        self.ended: RunEnded | None = None

    @classmethod
    def of(cls, records: Iterable[Record]) -> Population:
        """Fold a journal."""
        population = cls()
        for record in records:
            population.apply(record.event)
        return population

    def apply(self, event: Event) -> None:
        """Fold one event in; raises `RecordError` where it contradicts the past."""
        match event:
            case RunStarted():
                self.started = event
            case RunResumed():
                self.resumes += 1
                self.overrides += event.overrides
                self.ended = None
            case Consulted():
                self.consultations.append(event)
            case WinnerFrozen():
                self.winner = event
            case RunEnded():
                self.ended = event
            case _:
                self.lineage.apply(event)
                self.topology.apply(event, self.lineage)

    @property
    def plan(self) -> Mapping[str, object]:
        """The plan that the run started with, as data, and the changes that resumes allowed."""
        return amended(self.started.plan if self.started else {}, self.overrides)

    def consultation(self, island: str, round_: int) -> Consultation | None:
        """The answer already on record for this island and round, if there is one."""
        for consulted in self.consultations:
            answer = consulted.consultation
            if (answer.island, answer.round) == (island, round_):
                return answer
        return None

    def pending_moves(self, island: str) -> tuple[Move, ...]:
        """Moves on record that touch this island, and neither took effect on it nor are void."""
        settled = (*self.topology.moves, *self.topology.voided)
        done = Counter(move for where, _, move in settled if where == island)
        founded_after = self._moves_before_founding(island)
        pending = []
        for consulted in self.consultations[founded_after:]:
            for move in consulted.consultation.moves:
                touched = islands_touched(move)
                if touched is not None and island not in touched:
                    continue
                if done[move]:
                    done[move] -= 1
                else:
                    pending.append(move)
        return tuple(pending)

    def unfounded(self) -> tuple[Speciate, ...]:
        """Speciations that took effect on their source and whose island is not yet founded."""
        return tuple(
            move
            for _, _, move in self.topology.moves
            if isinstance(move, Speciate) and move.new_island not in self.topology.islands
        )

    def history_of(self, candidates: Iterable[str]) -> tuple[str, ...]:
        """The candidates and all their ancestors, in order of proposal."""
        wanted = set(candidates)
        frontier = list(wanted)
        while frontier:
            for parent in self.lineage[frontier.pop()].parents:
                if parent not in wanted:
                    wanted.add(parent)
                    frontier.append(parent)
        return tuple(node.candidate for node in self.lineage if node.candidate in wanted)

    def _moves_before_founding(self, island: str) -> int:
        """Consultations up to and with the one whose Speciate founded this island."""
        for position, consulted in enumerate(self.consultations):
            for move in consulted.consultation.moves:
                if isinstance(move, Speciate) and move.new_island == island:
                    return position + 1
        return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PopulationView:
    """What the orchestrator observes: the folds, the mutator pool, the search split, what is left.

    `attempts_left` is None where attempts are not limited; `k` attempts are made per task. `left`
    is what is left of other limits by name, None for none; ``rounds`` are an island's in all.
    """

    topology: Topology
    lineage: Lineage
    pool: tuple[str, ...]
    search_split: tuple[str, ...]
    attempts_left: int | None
    k: int
    patience: int
    past: tuple[Consultation, ...] = ()
    left: Mapping[str, float | None] = field(default_factory=dict)


def amended(plan: Mapping[str, object], overrides: Iterable[str]) -> Mapping[str, object]:
    """Plan data with changes laid over it, each ``key=JSON`` with a dotted key."""
    changed: dict[str, Any] = dict(plan)
    for override in overrides:
        key, _, value = override.partition("=")
        *groups, last = key.split(".")
        inner = changed
        for group in groups:
            inner[group] = dict(inner.get(group, {}))
            inner = inner[group]
        inner[last] = json.loads(value)
    return changed
