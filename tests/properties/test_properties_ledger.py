"""The budget ledger under random reservations, draws and settlements."""

from __future__ import annotations

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from milo.core.budget import ROLES, Budget, Ledger, Spend
from milo.core.errors import BudgetExceeded
from milo.core.population import Population
from milo.runtime.treasury import Treasury
from milo.testing.memory_records import MemoryRecords

NAMES = st.sampled_from(["a", "b", "c"])
AMOUNTS = st.integers(0, 40)


class LedgerMachine(RuleBasedStateMachine):
    """Owners that spend what they reserved, and no more."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget(attempts=100, tokens=1000)
        self.ledger = Ledger(self.budget)
        self.spent = 0

    @rule(name=NAMES, attempts=AMOUNTS)
    def reserve(self, name: str, attempts: int) -> None:
        before = dict(self.ledger.reserved)
        try:
            self.ledger.reserve(name, Spend(attempts=attempts, tokens=attempts))
        except BudgetExceeded:
            assert self.ledger.reserved == before

    @rule(name=NAMES, role=st.sampled_from(ROLES), attempts=AMOUNTS)
    def draw_from_a_promise(self, name: str, role: str, attempts: int) -> None:
        held = self.ledger.reserved.get(name, Spend()).attempts
        part = min(attempts, held)
        before = self.ledger.committed
        self.ledger.draw(name, role, Spend(attempts=part, tokens=part))
        self.spent += part
        assert self.ledger.committed == before

    @rule(name=NAMES, role=st.sampled_from(ROLES), attempts=AMOUNTS)
    def settle(self, name: str, role: str, attempts: int) -> None:
        held = self.ledger.reserved.get(name, Spend()).attempts
        part = min(attempts, held)
        self.ledger.settle(name, role, Spend(attempts=part, tokens=part))
        self.spent += part
        assert name not in self.ledger.reserved

    @rule()
    def restart(self) -> None:
        spent = self.ledger.spent
        self.ledger = Ledger(self.ledger.budget)
        for role, amount in spent.items():
            self.ledger.settle("", role, amount)

    @invariant()
    def never_more_than_the_budget(self) -> None:
        assert self.ledger.committed.attempts <= 100
        assert self.ledger.total.attempts == self.spent
        left = self.ledger.remaining()["attempts"]
        assert left == 100 - self.ledger.committed.attempts


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


class CallsMachine(RuleBasedStateMachine):
    """Workers that call under a budget, are killed with their owner, and go on."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.records = MemoryRecords()
        self.cost = 0
        self.in_flight: dict[str, int] = {}
        self.waiting: set[asyncio.Task[None]] = set()
        self.number = 0
        self.restart()

    def teardown(self) -> None:
        for task in self.waiting:
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def _reserve(self, call: str, amount: int) -> None:
        purse = self.purse
        try:
            await purse.reserve_call(call, "target", f"scope {amount % 3}", Spend(tokens=amount))
        except BudgetExceeded:
            return
        self.in_flight[call] = amount

    @rule(amount=st.integers(1, 400))
    def call(self, amount: int) -> None:
        self.number += 1

        async def begin() -> None:
            task = asyncio.ensure_future(self._reserve(f"call {self.number}", amount))
            self.waiting.add(task)
            task.add_done_callback(self.waiting.discard)
            await _settled_down()

        self.loop.run_until_complete(begin())

    @rule(share=st.floats(0.0, 1.0), data=st.data())
    def settle(self, share: float, data: st.DataObject) -> None:
        if not self.in_flight:
            return
        call = data.draw(st.sampled_from(sorted(self.in_flight)))
        cost = int(self.in_flight.pop(call) * share)
        self.cost += cost

        async def end() -> None:
            await self.purse.settle_call(call, Spend(tokens=cost))
            await _settled_down()

        self.loop.run_until_complete(end())

    @rule()
    def restart(self) -> None:
        """The owner is killed: who waited is gone, what was in flight is charged as promised."""
        for task in self.waiting:
            task.cancel()
        self.cost += sum(self.in_flight.values())
        self.in_flight = {}

        async def reopened() -> Treasury:
            await _settled_down()
            return Treasury(Budget(tokens=1000), self.records, Population())

        self.purse = self.loop.run_until_complete(reopened())

    @invariant()
    def nothing_is_lost_and_the_budget_holds(self) -> None:
        book = self.records.book
        assert book.total.tokens == self.cost
        assert book.open.keys() == self.in_flight.keys()
        assert book.promised.tokens == sum(self.in_flight.values())
        assert self.cost + book.promised.tokens <= 1000
        assert not self.waiting or book.open, "whoever waits, waits for a call in flight"


async def _settled_down() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


TestCalls = CallsMachine.TestCase
TestCalls.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
