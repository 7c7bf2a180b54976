"""The budget ledger under random reservations, draws and settlements."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from milo.core.budget import ROLES, Budget, Ledger, Spend
from milo.core.errors import BudgetExceeded

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
