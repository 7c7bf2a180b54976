"""Whole runs on landscapes with planted stalls, in this process: what each strategy comes to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from milo.core.budget import Budget
from milo.core.events import Record, RoundEnded
from milo.core.harness import Harness
from milo.core.lineage import Node
from milo.core.moves import Consultation
from milo.core.plan import (
    AdmissionPlan,
    AgentsPlan,
    ClusterPlan,
    MemoryKind,
    RunPlan,
    SelectionKind,
    SelectionPlan,
    StrategyPlan,
    WinnerRule,
)
from milo.core.population import Population
from milo.core.ports import PopulationView
from milo.runtime.driver import Driver, Watcher
from milo.runtime.parts import HostParts
from milo.runtime.seeding import Seed
from milo.runtime.stage import InlineStage
from milo.search.rules import RulesOrchestrator
from milo.testing.craftsman import Craftsman
from milo.testing.fake_parts import FakeParts
from milo.testing.landscape import genes_of
from milo.testing.memory_records import MemoryRecords
from milo.testing.stalls import STYLE, Kind, World, WorldRunner

CHILDREN = 36
"""Children, validation included, that the budget of one run buys."""
PATIENCE = 4
FLAT = {"selection": SelectionPlan(kind=SelectionKind.BEST), "memory": MemoryKind.FLAT}
STRATEGIES: Mapping[str, Mapping[str, object]] = {
    "a": {"islands": 1, "orchestrator": False, **FLAT},
    "b": {"islands": 1, "orchestrator": False, **FLAT},
    "c": {"islands": 1, "orchestrator": False},
    "d": {"orchestrator": False},
    "e": {},
}
"""SPEC §5's A to E as `conf/strategy` has them; A's mutator looks at no evidence."""


class Witness(RulesOrchestrator):
    """The rules; keeps their first answer after the planted stall has come about.

    It looks while the run goes on: what an orchestrator is shown is folded further afterwards.
    """

    def __init__(self, world: World, harnesses: Mapping[str, Harness]) -> None:
        self._world = world
        self._harnesses = harnesses
        self.answer: Consultation | None = None

    async def consult(self, view: PopulationView, island: str) -> Consultation:
        """The rules' answer."""
        answer = await super().consult(view, island)
        planted = self._world.planted in ("", island)
        if self.answer is None and planted and self._is_there(view, island):
            self.answer = answer
        return answer

    def _is_there(self, view: PopulationView, island: str) -> bool:
        """By what the harnesses are, not by what was measured; a dry mutator is from the start."""
        match self._world.kind:
            case Kind.PLATEAU:  # every island has tried in vain
                return all(len(_last(view, i)) == view.patience for i in view.topology.islands)
            case Kind.EXHAUSTED:  # another island can do what this one can't
                able = {name: self._able(view, name) for name in view.topology.islands}
                return any(can - able[island] for can in able.values())
            case Kind.NICHE:
                return self._is_crowded_out(view, island)
        return True

    def _able(self, view: PopulationView, island: str) -> frozenset[str]:
        """The techniques of the island's best harness."""
        members = [self._harnesses[member] for member in view.topology[island].members]
        genes = genes_of(max(members, key=self._world.accuracy))
        return frozenset(name for name in self._world.techniques if genes.get(name, 0))

    def _is_crowded_out(self, view: PopulationView, island: str) -> bool:
        style = {name: genes_of(h).get(STYLE, 0) for name, h in self._harnesses.items()}
        of_it = sum(style[node.parents[0]] for node in _last(view, island))
        return any(style[m] for m in view.topology[island].members) and 3 * of_it <= view.patience


def _last(view: PopulationView, island: str) -> list[Node]:
    """The island's last judged children, as many as the patience."""
    judged = [node for node in view.lineage.of_island(island) if node.parents and node.verdict]
    return judged[-view.patience :]


def plan_of(world: World, strategy: str, seed: int, children: int = CHILDREN) -> RunPlan:
    """A run of one strategy on a world; every strategy gets the same attempts."""
    suite = world.suite()
    attempts = 2 * (len(world.seeds) + children) * len(suite.splits.search) * world.k
    softmax = {"selection": SelectionPlan(tau=world.tau)}
    settings = {"islands": len(world.seeds), **softmax, **STRATEGIES[strategy]}
    return RunPlan(
        run=f"{strategy}-{seed}",
        seed=seed,
        strategy=StrategyPlan(
            name=strategy,
            admission=AdmissionPlan(alpha=0.3),
            winner=WinnerRule.ACCURACY,
            patience=PATIENCE,
            **settings,  # type: ignore[arg-type]
        ),
        agents=AgentsPlan(mutators=tuple(world.reach)),
        budget=Budget(attempts=attempts, rounds=children),
        cluster=ClusterPlan(slots=64),
    )


class Finished(NamedTuple):
    """A run that has ended: its journal and what that says, and its harnesses by candidate."""

    population: Population
    harnesses: Mapping[str, Harness]
    journal: Sequence[Record]


def run_world(
    world: World,
    plan: RunPlan,
    orchestrator: RulesOrchestrator | None = None,
    records: MemoryRecords | None = None,
) -> Finished:
    """Drive a run to its end."""
    records, suite = records or MemoryRecords(), world.suite()
    evidence = plan.strategy.name != "a"
    parts = FakeParts(
        plan=plan,
        the_suite=replace(suite, splits=replace(suite.splits, test=())),
        records=records,
        runner=WorldRunner(world=world),  # type: ignore[arg-type]
        mutators={
            name: Craftsman(world=world, name=name, evidence=evidence) for name in world.reach
        },
        the_orchestrator=orchestrator or RulesOrchestrator(),
        host_parts=HostParts,
    )
    seeds = [Seed(name=seed.manifest.name, harness=seed) for seed in world.seeds]
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    asyncio.run(Driver(parts, InlineStage(parts), seeds, watcher).run())
    journal = tuple(records.records())
    return Finished(Population.of(journal), records.harnesses, journal)


def truth_of(world: World, strategy: str, seed: int) -> float:
    """The exact accuracy of the harness that a strategy ends with."""
    run = run_world(world, plan_of(world, strategy, seed))
    assert run.population.winner is not None
    return world.accuracy(run.harnesses[run.population.winner.candidate])


def first_answer(world: World, seed: int) -> Consultation | None:
    """What the rules say when the planted stall is first there; None where it never is."""
    records = MemoryRecords()
    witness = Witness(world, records.harnesses)
    run_world(world, plan_of(world, "e", seed), witness, records)
    return witness.answer


def healthy_answer(world: World, seed: int) -> Consultation | None:
    """What the rules say of an island that has just got better; None where none ever did.

    The run is D's, so that nobody has moved anything; the moment is drawn by the seed.
    """
    plan = plan_of(world, "d", seed)
    journal = run_world(world, plan).journal
    moments = [
        number
        for number, record in enumerate(journal, start=1)
        if isinstance(record.event, RoundEnded) and record.event.round > plan.strategy.patience
        if record.event.stall == 0
    ]
    if not moments:
        return None
    moment = moments[int(np.random.default_rng(seed).integers(len(moments)))]
    ended = journal[moment - 1].event
    assert isinstance(ended, RoundEnded)
    view = view_of(Population.of(journal[:moment]), world, plan)
    return asyncio.run(RulesOrchestrator().consult(view, ended.island))


def view_of(population: Population, world: World, plan: RunPlan) -> PopulationView:
    """What an orchestrator would see of a run as it stands."""
    return PopulationView(
        topology=population.topology,
        lineage=population.lineage,
        pool=plan.agents.mutators,
        search_split=world.suite().splits.search,
        attempts_left=None,
        k=world.k,
        patience=plan.strategy.patience,
        past=tuple(c.consultation for c in population.consultations),
    )
