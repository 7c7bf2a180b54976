"""A whole run in one process, on a synthetic landscape: no Ray, no model, no sandbox."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from milo.core.attempt import Outcome, Status
from milo.core.budget import Budget
from milo.core.errors import HarnessError
from milo.core.events import CandidateProposed, Record, RunEnded, Verdict
from milo.core.harness import Harness
from milo.core.plan import AgentsPlan, ClusterPlan, RunPlan, StrategyPlan
from milo.core.population import Population
from milo.core.ports import AttemptJob, AttemptResult
from milo.runtime.driver import Driver, Ending, Watcher
from milo.runtime.parts import HostParts
from milo.runtime.recorder import Recorder
from milo.runtime.seeding import Seed
from milo.runtime.stage import InlineStage
from milo.search.rules import RulesOrchestrator
from milo.testing.fake_parts import FakeParts, MemoryReplay
from milo.testing.landscape import (
    GeneMutator,
    LandscapeRunner,
    landscape_harness,
    landscape_suite,
)
from milo.testing.memory_records import MemoryRecords

GENES = ("a", "b", "c", "d")


def plan_of(rounds: int = 5, **changes: object) -> RunPlan:
    settings: dict[str, object] = {
        "run": "test",
        "seed": 7,
        "strategy": StrategyPlan(patience=2),
        "agents": AgentsPlan(mutators=("genes", "genes2")),
        "budget": Budget(rounds=rounds),
        "cluster": ClusterPlan(slots=8),
    }
    return RunPlan(**{**settings, **changes})  # type: ignore[arg-type]


def parts_of(plan: RunPlan, records: MemoryRecords, **changes: object) -> FakeParts:
    settings: dict[str, object] = {
        "plan": plan,
        "the_suite": landscape_suite(16, GENES),
        "records": records,
        "runner": LandscapeRunner(),
        "mutators": {
            "genes": GeneMutator(genes=GENES),
            "genes2": GeneMutator(genes=GENES[:2], name="genes2"),
        },
        "the_orchestrator": RulesOrchestrator(),
        "host_parts": HostParts,
    }
    return FakeParts(**{**settings, **changes})  # type: ignore[arg-type]


def seeds() -> list[Seed]:
    return [
        Seed(name=f"s{n}", harness=landscape_harness({GENES[n]: n % 2}, f"s{n}")) for n in range(3)
    ]


def driver_of(parts: FakeParts) -> Driver:
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    return Driver(parts, InlineStage(parts), seeds(), watcher)


async def drive(parts: FakeParts) -> Ending:
    return await driver_of(parts).run()


def lineage_of(records: MemoryRecords) -> list[object]:
    """Every island's own events in canonical order."""
    shards = sorted({r.shard for r in records.journal} - {"run", "orchestrator"})
    return [(s, [r.event for r in records.journal if r.shard == s]) for s in shards]


async def test_a_run_evolves_three_islands_and_ends_with_a_tested_winner() -> None:
    records = MemoryRecords()
    ending = await drive(parts_of(plan_of(), records))
    population = Population.of(records.journal)
    assert not ending.interrupted
    assert ending.searched
    assert {state.round for state in population.topology.islands.values()} == {5}
    assert set(population.topology.islands) >= {"i1", "i2", "i3"}
    assert population.winner is not None
    assert population.lineage[population.winner.candidate].evaluation("test")
    assert isinstance(records.journal[-1].event, RunEnded)


async def test_no_attempt_is_made_twice() -> None:
    runner = LandscapeRunner()
    await drive(parts_of(plan_of(), MemoryRecords(), runner=runner))
    assert len(runner.ran) == len(set(runner.ran))


class Crash(BaseException):
    """Stands in for kill -9: nothing may catch it."""


async def crash_after(parts: FakeParts, writes: int) -> None:
    """Run until the journal has grown by a number of groups, then drop everything."""
    target = parts.records.writes + writes
    running = asyncio.create_task(driver_of(parts).run())
    while parts.records.writes < target and not running.done():
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("run_seed", [1, 2, 3])
async def test_a_replay_that_is_killed_twenty_times_gives_the_identical_lineage(
    run_seed: int,
) -> None:
    recorded = MemoryRecords()
    await drive(parts_of(plan_of(seed=run_seed), recorded))
    rng = random.Random(run_seed)
    again = MemoryRecords()
    replaying = {"recording": MemoryReplay(recorded)}
    for _ in range(20):
        await crash_after(parts_of(plan_of(seed=run_seed), again, **replaying), rng.randrange(1, 6))
    ending = await drive(parts_of(plan_of(seed=run_seed), again, **replaying))
    assert not ending.interrupted
    assert lineage_of(again) == lineage_of(recorded)


async def test_what_a_resume_has_read_from_the_disk_does_not_come_over_the_bus_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = MemoryRecords()
    await crash_after(parts_of(plan_of(), records), 12)
    past, asked = tuple(records.records()), []
    watch = Recorder.watch

    async def watched(self: Recorder, after_seq: int, timeout_s: float) -> Sequence[Record]:
        asked.append(after_seq)
        return await watch(self, after_seq, timeout_s)

    monkeypatch.setattr(Recorder, "watch", watched)
    parts = parts_of(plan_of(), records)
    shown: list[Record] = []
    watcher = Watcher(on_records=shown.extend, on_load=lambda *_: None)
    driver = Driver(parts, InlineStage(parts), seeds(), watcher, past=past)
    assert (await driver.run()).searched
    assert asked[0] == past[-1].seq
    assert shown == records.journal


async def test_infrastructure_faults_are_retried_and_never_scored_as_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("milo.runtime.dispatch.BACK_OFF_S", 0.0)
    failures: dict[str, int] = {}
    runner = LandscapeRunner()
    honest = runner.run

    async def flaky(job: AttemptJob) -> AttemptResult:
        key = str(job.key)
        failures[key] = failures.get(key, 0) + 1
        result = await honest(job)
        if failures[key] > 1 or job.key.index % 2:
            return result
        outcome = Outcome(key=job.key, status=Status.ENVIRONMENT_ERROR, reward=None)
        return AttemptResult(outcome=outcome, trace=result.trace)

    runner.run = flaky  # type: ignore[method-assign]
    records = MemoryRecords()
    await drive(parts_of(plan_of(rounds=1), records, runner=runner))
    assert all(outcome.is_valid for outcome in records.outcomes.values())
    assert {outcome.tries for outcome in records.outcomes.values()} == {2}


async def test_the_attempt_budget_is_never_exceeded() -> None:
    suite_cost = 48 + 48 + 64
    plan = plan_of(rounds=50, budget=Budget(attempts=suite_cost + 130))
    records = MemoryRecords()
    ending = await drive(parts_of(plan, records))
    assert len(records.outcomes) <= suite_cost + 130
    assert "attempts" in ending.reason
    assert ending.searched


async def test_a_finished_child_is_in_the_island_that_declared_it() -> None:
    records = MemoryRecords()
    await drive(parts_of(plan_of(), records))
    for record in records.journal:
        if isinstance(record.event, CandidateProposed):
            assert record.shard == record.event.island
    lineage = Population.of(records.journal).lineage
    assert any(node.verdict is Verdict.ADMITTED for node in lineage)


async def test_a_seed_that_cannot_start_is_refused_before_an_attempt_is_paid() -> None:
    runner = LandscapeRunner()

    async def broken(harness: Harness) -> str:
        return "exit code 1: no module named nothing"

    runner.smoke = broken  # type: ignore[method-assign]
    records = MemoryRecords()
    with pytest.raises(HarnessError, match="no module named nothing"):
        await drive(parts_of(plan_of(), records, runner=runner))
    assert not records.journal
    assert not runner.ran


async def test_one_island_starts_from_the_seed_that_is_best_on_the_search_split() -> None:
    records = MemoryRecords()
    plan = plan_of(rounds=1, strategy=StrategyPlan(islands=1, patience=2))
    await drive(parts_of(plan, records))
    lineage = Population.of(records.journal).lineage
    search = landscape_suite(16, GENES).splits.search
    fitness = {
        genes.harness.digest: records_fitness(records, genes.harness.digest, search)
        for genes in seeds()
    }
    assert lineage["i1.0"].harness == max(fitness, key=lambda digest: fitness[digest])


def records_fitness(records: MemoryRecords, digest: str, tasks: tuple[str, ...]) -> float:
    """Mean reward of a harness on tasks, from the attempts on record."""
    rewards = [
        o.reward or 0.0
        for o in records.outcomes.values()
        if o.key.harness == digest and o.key.task in tasks
    ]
    return sum(rewards) / len(rewards)
