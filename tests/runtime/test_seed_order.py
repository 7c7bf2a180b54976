"""Where islands are fewer than seeds, the seeds are scored first: as safely as all that follows."""

from __future__ import annotations

import asyncio

import pytest
from test_inline_run import driver_of, parts_of, plan_of, seeds

from milo.core.budget import Budget
from milo.core.events import RunStarted
from milo.core.plan import StrategyPlan
from milo.core.population import Population
from milo.core.ports import AttemptJob
from milo.runtime.driver import Driver, Watcher
from milo.runtime.seeding import Seed, given_name
from milo.runtime.stage import InlineStage
from milo.testing.landscape import LandscapeRunner
from milo.testing.memory_records import MemoryRecords

ONE_ISLAND = StrategyPlan(islands=1, patience=2)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver looks up often enough for runs of a moment."""
    monkeypatch.setattr("milo.runtime.driver.TICK_S", 0.02)


def given(records: MemoryRecords) -> list[Seed]:
    """The seeds as the run kept them when it started."""
    started = Population.of(records.journal).started
    assert started is not None
    return [
        Seed(name=name, harness=records.harnesses[given_name(number)])
        for number, name in enumerate(started.seeds, start=1)
    ]


async def test_a_run_stands_on_record_before_an_attempt_on_its_seeds_is_paid() -> None:
    records = MemoryRecords()
    seen: list[bool] = []

    async def look(job: AttemptJob) -> None:
        seen.append(any(isinstance(record.event, RunStarted) for record in records.journal))

    runner = LandscapeRunner(before=look)
    await driver_of(parts_of(plan_of(rounds=1, strategy=ONE_ISLAND), records, runner=runner)).run()
    assert seen and all(seen)


async def test_an_interrupt_stops_the_scoring_of_seeds_and_a_resume_repeats_no_attempt() -> None:
    """What breaks without it: Ctrl-C is ignored until every seed is scored and paid for."""
    records, runner = MemoryRecords(), LandscapeRunner()
    plan = plan_of(rounds=1, strategy=ONE_ISLAND)
    first = driver_of(parts_of(plan, records, runner=runner))

    async def stop_at_the_tenth(job: AttemptJob) -> None:
        if len(runner.ran) >= 10:
            first.interrupt()
            await asyncio.sleep(0.05)

    runner.before = stop_at_the_tenth
    ending = await first.run()
    assert ending.interrupted
    assert 10 <= len(runner.ran) < 3 * 16
    runner.before = None

    parts = parts_of(plan, records, runner=runner)
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    again = await Driver(parts, InlineStage(parts), given(records), watcher).run()
    assert again.searched
    assert len(runner.ran) == len(set(runner.ran))


async def test_a_spent_limit_ends_the_scoring_of_seeds_and_the_order_given_stands() -> None:
    records, runner = MemoryRecords(), LandscapeRunner()
    budget = Budget(rounds=1, tokens=3_000)
    plan = plan_of(strategy=ONE_ISLAND, budget=budget)

    async def slowly(job: AttemptJob) -> None:
        await asyncio.sleep(0.05)

    runner.before = slowly
    ending = await driver_of(parts_of(plan, records, runner=runner)).run()
    assert not ending.interrupted and not ending.searched
    assert "tokens" in ending.reason
    lineage = Population.of(records.journal).lineage
    assert [lineage[f"i{n}.0"].harness for n in (1, 2, 3)] == [s.harness.digest for s in seeds()]
    searched = [key for key in runner.ran if key.split("@")[0].split("/")[1] < "t016"]
    assert len(searched) < 3 * 16
