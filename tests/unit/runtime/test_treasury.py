"""The purse of a run: hard limits call by call, turns, and what a kill leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from milo.core.budget import Budget, Spend
from milo.core.calls import CallMark
from milo.core.errors import BudgetSpent
from milo.core.population import Population
from milo.core.rates import Rates
from milo.runtime.treasury import TEST_PROMISE, Treasury
from milo.testing.fake_parts import ManualClock
from milo.testing.memory_records import MemoryRecords


def dollars(amount: float) -> Spend:
    return Spend(dollars=amount, tokens=round(amount * 1000))


def treasury(
    budget: Budget, records: MemoryRecords | None = None, **more: Any
) -> tuple[Treasury, MemoryRecords]:
    kept = records or MemoryRecords()
    return Treasury(budget, kept, Population.of(kept.records()), **more), kept


async def waiting(work: Awaitable[None]) -> asyncio.Task[None]:
    """The work as a task that has begun."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task  # type: ignore[return-value]


async def test_sixteen_workers_stay_within_the_budget_and_spend_nearly_all_of_it() -> None:
    purse, records = treasury(Budget(dollars=1.0))
    costs, most, refused = 0.01, 0.03, 0

    async def worker(number: int) -> None:
        nonlocal refused
        for turn in range(1000):
            call = f"{number}.{turn}"
            try:
                await purse.reserve_call(call, "target", f"worker {number}", dollars(most))
            except BudgetSpent:
                refused += 1
                return
            await asyncio.sleep(0)
            await purse.settle_call(call, dollars(costs))

    await asyncio.gather(*(worker(number) for number in range(16)))
    assert refused == 16 and purse.refused == "dollars"
    spent = purse.ledger.spent["target"].dollars
    assert 1.0 - most < spent <= 1.0 + 1e-9
    assert spent == pytest.approx(records.book.total.dollars)


async def test_a_call_waits_for_those_in_flight_before_it_is_refused() -> None:
    """Promises are larger than costs: without waiting, sixteen of them would end a search."""
    purse, _ = treasury(Budget(dollars=1.0))
    await purse.reserve_call("a", "target", "s", dollars(0.9))
    second = await waiting(purse.reserve_call("b", "target", "t", dollars(0.9)))
    assert not second.done()
    await purse.settle_call("a", dollars(0.05))
    await asyncio.wait_for(second, 5)
    assert not purse.refused


async def test_what_is_kept_for_the_final_test_is_not_there_for_calls() -> None:
    purse, _ = treasury(Budget(dollars=1.0))
    purse.ledger.reserve(TEST_PROMISE, dollars(0.5))
    with pytest.raises(BudgetSpent, match="dollars are spent"):
        await purse.reserve_call("a", "target", "s", dollars(0.6))
    purse.ledger.reserve(TEST_PROMISE, Spend(attempts=3))
    await purse.reserve_call("b", "target", "s", dollars(0.6))


async def test_a_withdrawn_call_holds_nothing() -> None:
    purse, records = treasury(Budget(dollars=1.0))
    await purse.reserve_call("a", "target", "s", dollars(0.9))
    second = await waiting(purse.reserve_call("b", "target", "t", dollars(0.9)))
    await purse.settle_call("b", Spend())
    await purse.settle_call("a", dollars(0.1))
    await asyncio.wait_for(second, 5)
    assert not records.book.open and records.book.total.dollars == pytest.approx(0.1)


async def test_after_a_kill_calls_in_flight_are_listed_and_charged_as_promised() -> None:
    purse, records = treasury(Budget(dollars=1.0))
    await purse.reserve_call("done", "target", "s", dollars(0.3))
    await purse.settle_call("done", dollars(0.1))
    await purse.reserve_call("lost", "mutator", "mutator/c/0", dollars(0.2))
    again, _ = treasury(Budget(dollars=1.0), records)
    assert [entry.call for entry in records.book.unsettled] == ["lost"]
    assert again.ledger.spent["target"].dollars == pytest.approx(0.1)
    assert again.ledger.spent["mutator"].dollars == pytest.approx(0.2)
    third, _ = treasury(Budget(dollars=1.0), records)
    assert third.ledger.total.dollars == pytest.approx(0.3), "charged once"


async def test_a_lost_host_s_calls_are_given_up_and_make_room() -> None:
    purse, records = treasury(Budget(dollars=1.0))
    await purse.reserve_call("a", "target", "attempt", dollars(0.9))
    second = await waiting(purse.reserve_call("b", "target", "other", dollars(0.5)))
    purse.forsake("attempt")
    with pytest.raises(BudgetSpent):
        await asyncio.wait_for(second, 5)
    assert [entry.call for entry in records.book.unsettled] == ["a"]


async def test_usage_past_the_gateway_is_charged_beside_its_calls() -> None:
    purse, records = treasury(Budget(dollars=1.0))
    await purse.reserve_call("a", "mutator", "mutator/c/0", dollars(0.2))
    await purse.settle_call("a", dollars(0.1))
    purse.absorb("mutator", ("mutator/c",), Spend(tokens=100, dollars=0.1))
    assert purse.ledger.spent["mutator"].dollars == pytest.approx(0.1)
    purse.absorb("mutator", ("mutator/d",), Spend(tokens=70, dollars=0.07))
    assert purse.ledger.spent["mutator"] == Spend(tokens=170, dollars=pytest.approx(0.17))
    assert [e.mark for e in records.call_entries][-1] is CallMark.CHARGED


async def test_a_declared_rate_gives_scopes_turns() -> None:
    clock = ManualClock()
    purse, _ = treasury(Budget(), rates=Rates(requests=60), now=clock)
    for nth in range(60):
        await purse.reserve_call(f"first {nth}", "target", "greedy", Spend(tokens=1))
    names = [("greedy", n) for n in range(3)] + [("modest", 0)]
    tasks = {
        (scope, n): await waiting(
            purse.reserve_call(f"{scope} {n}", "target", scope, Spend(tokens=1))
        )
        for scope, n in names
    }
    assert not any(task.done() for task in tasks.values())
    await purse.reserve_call("mutator", "mutator", "m", Spend(tokens=1))
    went = []
    for _ in names:
        clock.time += 1.0
        await purse.settle_call("nobody", Spend())
        await asyncio.sleep(0)
        went += [name for name, task in tasks.items() if task.done() and name not in went]
    assert went == [("greedy", 0), ("modest", 0), ("greedy", 1), ("greedy", 2)]


async def test_a_rate_s_turn_comes_by_itself() -> None:
    purse, _ = treasury(Budget(), rates=Rates(tokens=600_000))
    await purse.reserve_call("all", "target", "s", Spend(tokens=600_000))
    await asyncio.wait_for(purse.reserve_call("more", "target", "s", Spend(tokens=10)), 5)


async def test_a_replay_s_calls_are_counted_and_never_refused() -> None:
    """Its calls come in another order: what the recorded run could pay for must not be refused."""
    purse, records = treasury(Budget(dollars=1.0), rates=Rates(requests=1), hard=False)
    for nth in range(3):
        await purse.reserve_call(f"{nth}", "target", "s", dollars(0.9))
    assert not purse.refused and records.book.promised.dollars == pytest.approx(2.7)
