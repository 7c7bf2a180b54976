"""A hand-made population: islands, children with given pass rates, moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from island_driver import evaluation_of

from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Change,
    Event,
    FrameFixed,
    IslandClosed,
    IslandFounded,
    MoveApplied,
    RoundEnded,
    Verdict,
)
from milo.core.hypervolume import Frame
from milo.core.lineage import Lineage
from milo.core.moves import Consultation, Diagnosis, Move
from milo.core.ports import PopulationView
from milo.core.topology import Topology

TASKS = tuple(f"s{i:02}" for i in range(6))
FRAME = Frame(seed_accuracy=0.2, token_scale=100.0, latency_scale=1.0)


class Scene:
    """Folds events into a view; six search tasks, pool of two mutators."""

    def __init__(self) -> None:
        self.lineage = Lineage()
        self.topology = Topology()
        self.past: list[Consultation] = []
        self.pool = ("a", "b")

    def apply(self, *events: Event) -> Scene:
        for event in events:
            self.lineage.apply(event)
            self.topology.apply(event, self.lineage)
        return self

    def island(
        self, name: str, rewards: Sequence[float], *, mutator: str = "a", stall: int = 0
    ) -> Scene:
        """An island with a scored seed that stands at round 0."""
        root = f"{name}.0"
        self.apply(IslandFounded(island=name, mutator=mutator, root=root, search=TASKS))
        self.candidate(root, (), rewards, Verdict.SEED)
        self.apply(FrameFixed(island=name, epoch=0, search=TASKS, frame=FRAME))
        return self.stalled(name, stall)

    def stalled(self, name: str, stall: int, round_: int = 0) -> Scene:
        return self.apply(RoundEnded(island=name, round=round_, stall=stall, best_validation=0.5))

    def candidate(
        self,
        candidate: str,
        parents: tuple[str, ...],
        rewards: Sequence[float],
        verdict: Verdict | None,
        costs: Mapping[str, float] = MappingProxyType({}),
        **changes: object,
    ) -> Scene:
        name, number = candidate.split(".")
        proposed = CandidateProposed(
            island=name,
            candidate=candidate,
            round=int(number),
            parents=parents,
            harness=f"tree {candidate}",
            mutator=self.topology[name].mutator,
            change=Change(title=f"edit {candidate}"),
            patch_lines=20,
        )
        self.apply(replace(proposed, **changes))  # type: ignore[arg-type]
        if rewards:
            scores = evaluation_of(rewards, **costs)
            self.apply(
                CandidateScored(island=name, candidate=candidate, split="search", scores=scores)
            )
        if verdict is not None:
            self.apply(
                CandidateJudged(
                    island=name,
                    candidate=candidate,
                    round=int(number),
                    verdict=verdict,
                    reason="r",
                )
            )
        return self

    def failures(self, name: str, rewards: Sequence[float], n: int = 2, **changes: object) -> Scene:
        """`n` rejected children of the root."""
        start = len(self.lineage.of_island(name))
        for i in range(start, start + n):
            self.candidate(f"{name}.{i}", (f"{name}.0",), rewards, Verdict.REJECTED, **changes)
        return self

    def moved(self, name: str, move: Move, round_: int = 1) -> Scene:
        self.answered(move)
        return self.apply(MoveApplied(island=name, round=round_, move=move))

    def answered(self, *moves: Move) -> Scene:
        self.past.append(
            Consultation(island="i1", round=0, diagnosis=Diagnosis.HEALTHY, words="", moves=moves)
        )
        return self

    def closed(self, name: str) -> Scene:
        return self.apply(IslandClosed(island=name, round=0, reason="spent"))

    def view(self, **changes: object) -> PopulationView:
        view = PopulationView(
            topology=self.topology,
            lineage=self.lineage,
            pool=self.pool,
            search_split=(*TASKS, "s06", "s07"),
            attempts_left=None,
            k=3,
            patience=2,
            past=tuple(self.past),
        )
        return replace(view, **changes)  # type: ignore[arg-type]


LOW = (0.0,) * 6
LEFT = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
WORSE = (1.0, 1.0, 0.0, 0.0, 0.0, 0.0)
RIGHT = (0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
HARD = (0.67, 0.67, 0.67, 0.67, 0.0, 0.0)


def niche_scene() -> Scene:
    """i1's best solves the left half; the subtree of i1.1 the right; parents come from the best."""
    scene = Scene().island("i1", LOW)
    scene.candidate("i1.1", ("i1.0",), (0, 0, 0, 1, 1, 0), Verdict.ADMITTED)
    scene.candidate("i1.2", ("i1.0",), LEFT, Verdict.ADMITTED)
    scene.candidate("i1.3", ("i1.2",), LEFT, Verdict.REJECTED)
    scene.candidate("i1.4", ("i1.2",), LEFT, Verdict.REJECTED)
    return scene.stalled("i1", 2, 4)
