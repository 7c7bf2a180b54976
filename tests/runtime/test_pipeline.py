"""Several children of one island in the making: what each proposer saw is fixed and on record."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from test_inline_run import (
    GENES,
    crash_after,
    drive,
    driver_of,
    lineage_of,
    parts_of,
    plan_of,
)

from milo.core.budget import Budget
from milo.core.events import CandidateProposed, Record
from milo.core.evidence import Brief, Proposal
from milo.core.moves import Graft
from milo.core.plan import AdmissionPlan, RunPlan, StrategyPlan
from milo.core.population import Population
from milo.core.ports import AttemptJob, Workshop
from milo.runtime.ahead import window_of
from milo.testing.fake_parts import FakeParts, MemoryReplay
from milo.testing.landscape import GeneMutator, LandscapeRunner
from milo.testing.memory_records import MemoryRecords

DEPTH = 3
WINDOW = window_of(DEPTH)


@pytest.fixture(autouse=True)
def nothing_left_to_finalize() -> Iterator[None]:
    """What killed runs leave in cycles is collected here, not in the middle of a later import:
    Python 3.11 may then find its parser's recursion depth changed."""
    yield
    gc.collect()


@dataclass(kw_only=True)
class UnevenMutator:
    """Takes longer for some proposals than for others, and counts how many are under way."""

    rng: random.Random
    turns: int = 40
    name: str = "genes"
    now: int = 0
    most: int = 0
    shown: dict[str, list[str]] = field(default_factory=dict)

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        self.now += 1
        self.most = max(self.most, self.now)
        known = [edge.child for edge in brief.snapshot if edge.verdict is not None]
        self.shown.setdefault(f"{brief.island}/{brief.round}", known)
        for _ in range(self.rng.randrange(self.turns)):
            await asyncio.sleep(0)
        self.now -= 1
        return await GeneMutator(genes=GENES).propose(brief, workshop)


def deep(rounds: int = 9, **changes: object) -> RunPlan:
    settings: dict[str, object] = {
        "islands": 2,
        "patience": 2,
        "orchestrator": False,
        "pipeline_depth": DEPTH,
        "admission": AdmissionPlan(alpha=0.3, bootstraps=10),
    }
    strategy = StrategyPlan(**{**settings, **changes})  # type: ignore[arg-type]
    return plan_of(rounds=rounds, strategy=strategy)


def uneven_parts(plan: RunPlan, records: MemoryRecords, timing: int, **more: object) -> FakeParts:
    """Parts whose mutators and attempts take their time, differently for each `timing`."""
    rng = random.Random(timing)

    async def wait(job: AttemptJob) -> None:
        for _ in range(rng.randrange(12)):
            await asyncio.sleep(0)

    mutator = UnevenMutator(rng=rng)
    return parts_of(
        plan,
        records,
        mutators={"genes": mutator, "genes2": mutator},
        runner=LandscapeRunner(before=wait),
        **more,
    )


def children(records: MemoryRecords) -> list[CandidateProposed]:
    found = [record.event for record in records.journal]
    return [e for e in found if isinstance(e, CandidateProposed) and e.parents]


async def test_each_child_says_which_round_its_proposer_saw_last_and_timing_changes_nothing() -> (
    None
):
    runs = []
    for timing in (1, 2):
        records = MemoryRecords()
        await drive(uneven_parts(deep(), records, timing))
        runs.append(records)
    assert lineage_of(runs[0]) == lineage_of(runs[1])
    assert {child.seen for child in children(runs[0]) if child.round <= WINDOW} == {0}
    assert all(c.seen == max(0, c.round - WINDOW) for c in children(runs[0]))
    assert {child.round for child in children(runs[0])} == set(range(1, 10))


async def test_a_proposer_is_shown_the_lineage_up_to_the_round_on_record_and_no_later() -> None:
    records = MemoryRecords()
    parts = uneven_parts(deep(), records, 3)
    await drive(parts)
    mutator = parts.mutators["genes"]
    assert isinstance(mutator, UnevenMutator)
    lineage = Population.of(records.journal).lineage
    for child in children(records):
        before = [
            node.candidate
            for node in lineage.of_island(child.island)
            if node.parents and node.round <= child.seen
        ]
        assert mutator.shown[f"{child.island}/{child.round}"] == before


async def test_an_island_has_as_many_children_proposed_at_once_as_the_plan_says() -> None:
    records = MemoryRecords()
    parts = uneven_parts(deep(islands=1), records, 4)
    await drive(parts)
    mutator = parts.mutators["genes"]
    assert isinstance(mutator, UnevenMutator)
    assert mutator.most == DEPTH


async def test_without_a_pipeline_each_proposer_saw_the_round_before() -> None:
    records = MemoryRecords()
    await drive(uneven_parts(deep(pipeline_depth=1), records, 5))
    assert all(child.seen == child.round - 1 for child in children(records))


@pytest.mark.parametrize("run_seed", [1, 2, 3])
async def test_a_replay_in_other_time_that_is_killed_twenty_times_gives_the_identical_lineage(
    run_seed: int,
) -> None:
    """With moves: a graft, a speciation or a new curriculum comes while children are made."""
    plan = deep(orchestrator=True, patience=1, islands=3)
    recorded = MemoryRecords()
    await drive(uneven_parts(plan, recorded, run_seed))
    assert Population.of(recorded.journal).topology.moves
    rng = random.Random(run_seed)
    again = MemoryRecords()
    for kill in range(20):
        parts = uneven_parts(plan, again, 100 + kill, recording=MemoryReplay(recorded))
        await crash_after(parts, rng.randrange(1, 6))
    ending = await drive(uneven_parts(plan, again, 99, recording=MemoryReplay(recorded)))
    assert not ending.interrupted
    assert lineage_of(again) == lineage_of(recorded)


async def test_a_run_that_was_killed_goes_on_from_its_records_alone() -> None:
    whole, cut = MemoryRecords(), MemoryRecords()
    await drive(uneven_parts(deep(), whole, 6))
    rng = random.Random(6)
    for kill in range(12):
        await crash_after(uneven_parts(deep(), cut, 200 + kill), rng.randrange(2, 8))
    parts = uneven_parts(deep(), cut, 7)
    await drive(parts)
    assert lineage_of(cut) == lineage_of(whole)
    assert len(cut.outcomes) == len(whole.outcomes)


async def test_one_graft_makes_one_grafted_child() -> None:
    plan = deep(rounds=14, orchestrator=True, patience=1, islands=3)
    records = MemoryRecords()
    await drive(uneven_parts(plan, records, 8))
    population = Population.of(records.journal)
    for island, state in population.topology.islands.items():
        applied = [r for where, r, move in population.topology.moves if where == island
                   and isinstance(move, Graft)]  # fmt: skip
        grafted = [n.round for n in population.lineage.of_island(island) if len(n.parents) > 1]
        due = [round_ + WINDOW - 1 for round_ in applied if round_ + WINDOW - 1 <= state.round]
        assert grafted == due


async def test_a_budget_of_attempts_is_kept_and_what_is_in_the_making_is_finished() -> None:
    suite_cost = 48 + 48 + 64
    plan = deep(rounds=50)
    budget = Budget(attempts=suite_cost + 400)
    plan = plan_of(strategy=plan.strategy, budget=budget)
    records = MemoryRecords()
    ending = await drive(uneven_parts(plan, records, 9))
    assert len(records.outcomes) <= suite_cost + 400
    assert "attempts" in ending.reason
    rounds = {s.round for s in Population.of(records.journal).topology.islands.values()}
    assert max(rounds) >= 4


async def test_an_interrupted_run_stops_with_children_in_the_making() -> None:
    records = MemoryRecords()
    driver = driver_of(uneven_parts(deep(rounds=200), records, 10))
    running = asyncio.create_task(driver.run())
    while not any(isinstance(r.event, CandidateProposed) and r.event.round > 3
                  for r in _tail(records)):  # fmt: skip
        await asyncio.sleep(0)
    driver.interrupt()
    ending = await asyncio.wait_for(running, 20)
    assert ending.interrupted


def _tail(records: MemoryRecords) -> list[Record]:
    return records.journal[-20:]
