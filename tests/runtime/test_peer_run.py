"""A whole run that a peer searches, in this process: its candidates are like any other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

from test_inline_run import GENES, parts_of, plan_of

from milo.agents.cli.description import Description
from milo.agents.peer import PeerMutator
from milo.core.budget import Budget
from milo.core.events import ProposalSentBack, Verdict
from milo.core.plan import (
    AdmissionPlan,
    AgentsPlan,
    MemoryKind,
    RunPlan,
    SelectionKind,
    SelectionPlan,
    StrategyPlan,
)
from milo.core.population import Population
from milo.core.station import AgentJob
from milo.runtime.driver import Driver, Ending, Watcher
from milo.runtime.parts import HostParts
from milo.runtime.seeding import Seed
from milo.runtime.stage import InlineStage
from milo.testing.landscape import landscape_harness
from milo.testing.memory_records import MemoryRecords
from milo.testing.peers import Ask, FakeStation

ABOUT = Description.model_validate(
    {"name": "peer", "title": "Peer", "wire": "chat", "command": ["python3", "drive.py"]}
)


def plan(**changes: object) -> RunPlan:
    strategy = StrategyPlan(
        name="peer",
        islands=1,
        selection=SelectionPlan(kind=SelectionKind.BEST),
        memory=MemoryKind.FLAT,
        admission=AdmissionPlan(alpha=1.0),
        mutation_tries=100,
        orchestrator=False,
    )
    return plan_of(4, strategy=strategy, agents=AgentsPlan(mutators=("peer",)), **changes)


class Climber:
    """A peer that raises one gene after another, and drops every other after a minibatch."""

    def __init__(self) -> None:
        self.told: list[Mapping[str, object]] = []
        self.station = FakeStation(self.drive)

    async def drive(self, ask: Ask, job: AgentJob) -> None:
        tasks = json.loads(job.workspace.text("peer.json"))["tasks"]
        genes: dict[str, int] = {"a": 1}
        for step in range(50):
            self.station.session.call(100)
            tried = {**genes, GENES[step % 4]: 1 + step // 4}
            await self.ask(ask, tried, tasks[:4])
            if step % 2:
                continue  # its own rule: on to the next
            whole = await self.ask(ask, tried, tasks)
            if not whole["refused"]:
                genes = tried

    async def ask(
        self, ask: Ask, genes: Mapping[str, int], tasks: Sequence[str]
    ) -> Mapping[str, object]:
        text = json.dumps(dict(sorted(genes.items())))
        answer = await ask({"files": {"genes.json": text}, "tasks": list(tasks)})
        self.told.append(answer)
        return answer


def run(of: RunPlan, records: MemoryRecords, climber: Climber) -> Ending:
    mutator = PeerMutator(ABOUT, "peer:m", climber.station)
    parts = parts_of(of, records, mutators={"peer": mutator}, host_parts=HostParts)
    seeds = [Seed(name="a", harness=landscape_harness({"a": 1}, "a"))]
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    return asyncio.run(Driver(parts, InlineStage(parts), seeds, watcher).run())


def test_a_peers_candidates_are_scored_judged_validated_and_tested_like_any_other() -> None:
    records, climber = MemoryRecords(), Climber()
    ending = run(plan(), records, climber)
    population = Population.of(records.records())
    children = [node for node in population.lineage if node.parents]
    assert ending.searched and len(children) == 4
    assert all(node.verdict is not None for node in children)
    assert any(node.verdict is Verdict.ADMITTED for node in children)
    assert population.winner is not None
    assert population.lineage[population.winner.candidate].evaluation("test")
    assert climber.station.ended == 1, "the driver ends with its island"


def test_a_child_stands_under_the_candidate_that_it_is_nearest_to() -> None:
    records = MemoryRecords()
    run(plan(), records, Climber())
    lineage = Population.of(records.records()).lineage
    parents = {node.candidate: node.parents for node in lineage if node.parents}
    assert all(len(names) == 1 and names[0] in lineage for names in parents.values())


def test_what_a_peer_drops_and_spends_is_on_record_and_paid_once() -> None:
    records, climber = MemoryRecords(), Climber()
    run(plan(), records, climber)
    events = [record.event for record in records.records()]
    dropped = [event for event in events if isinstance(event, ProposalSentBack)]
    assert dropped and all("by its own rule" in event.reason for event in dropped)
    lineage = Population.of(records.records()).lineage
    calls = sum(usage.calls for usage in climber.station.session.spent.values())
    kept = sum(node.usage.calls for node in lineage)
    assert kept == calls, "dropped candidates count towards the child that came after them"


def test_nothing_that_was_measured_is_run_again() -> None:
    records = MemoryRecords()
    run(plan(), records, Climber())
    keys = [str(key) for key in records.outcomes]
    assert len(keys) == len(set(keys))


def test_a_peer_keeps_to_the_runs_budget() -> None:
    records = MemoryRecords()
    ending = run(plan(budget=Budget(attempts=150)), records, Climber())
    assert len(records.outcomes) <= 150
    assert "attempts" in ending.reason
