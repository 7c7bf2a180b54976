"""Hard limits and the one ledger: reserve before, settle after (SPEC §4, end)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from milo.core.attempt import Usage
from milo.core.errors import BudgetExceeded


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """The run's limits; None means that this limit does not bind. At least one must."""

    rounds: int | None = None
    """Generations of every island."""
    hours: float | None = None
    """Hours by the clock, counted while the run is active."""
    attempts: int | None = None
    """Executions of a harness on a task."""
    tokens: int | None = None
    """Tokens of target, mutators and orchestrator together."""
    dollars: float | None = None
    """Dollars of target, mutators and orchestrator together."""

    @property
    def is_bounded(self) -> bool:
        """Whether any limit is set."""
        return any(getattr(self, f.name) is not None for f in fields(self))


@dataclass(frozen=True, kw_only=True, slots=True)
class Spend:
    """Amounts of what the ledger counts; the unit of reservations and totals."""

    attempts: int = 0
    tokens: int = 0
    dollars: float = 0.0

    def __add__(self, other: Spend) -> Spend:
        return Spend(
            attempts=self.attempts + other.attempts,
            tokens=self.tokens + other.tokens,
            dollars=self.dollars + other.dollars,
        )

    def __sub__(self, other: Spend) -> Spend:
        return Spend(
            attempts=self.attempts - other.attempts,
            tokens=self.tokens - other.tokens,
            dollars=self.dollars - other.dollars,
        )

    @classmethod
    def of(cls, usage: Usage, *, attempts: int = 0) -> Spend:
        """What a usage costs; an unknown price counts no dollars (tokens are capped either way)."""
        return cls(attempts=attempts, tokens=usage.tokens, dollars=usage.dollars or 0.0)


ROLES = ("target", "mutator", "orchestrator", "judge")


class Ledger:
    """Reserved and spent amounts by role, under one budget. Not thread-safe: one owner.

    A reservation is a promise under a name; settling it replaces the promise by what was really
    spent. A part may be settled early (`draw`), so that a child's promise shrinks as its attempts
    are paid. `settle` of an unknown name only adds the spend: nothing is ever lost.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.spent: dict[str, Spend] = {role: Spend() for role in ROLES}
        self.reserved: dict[str, Spend] = {}

    @property
    def total(self) -> Spend:
        """Everything spent, over all roles."""
        return sum(self.spent.values(), Spend())

    @property
    def committed(self) -> Spend:
        """Everything spent or promised."""
        return sum(self.reserved.values(), self.total)

    def reserve(self, name: str, amount: Spend) -> None:
        """Promise an amount; raises `BudgetExceeded`, naming the limit, if it does not fit.

        Reserving a name again replaces its promise.
        """
        others = self.committed - self.reserved.get(name, Spend())
        wanted = others + amount
        for limit in ("attempts", "tokens", "dollars"):
            cap = getattr(self.budget, limit)
            if cap is not None and getattr(wanted, limit) > cap:
                left = cap - getattr(others, limit)
                raise BudgetExceeded(
                    f"{name} needs {getattr(amount, limit):g} {limit}, but only {left:g} of "
                    f"{cap:g} are left"
                )
        self.reserved[name] = amount

    def draw(self, name: str, role: str, amount: Spend) -> None:
        """Spend a part of a promise; the promise shrinks by as much, not below zero."""
        self.spent[role] += amount
        self.shrink(name, amount)

    def shrink(self, name: str, amount: Spend) -> None:
        """Take off a promise what was spent under it and counted elsewhere, call by call."""
        if name in self.reserved:
            left = self.reserved[name] - amount
            self.reserved[name] = Spend(
                attempts=max(0, left.attempts),
                tokens=max(0, left.tokens),
                dollars=max(0.0, left.dollars),
            )

    def settle(self, name: str, role: str, amount: Spend = Spend()) -> None:
        """Close a promise, spending `amount` in its place."""
        self.reserved.pop(name, None)
        self.spent[role] += amount

    def remaining(self) -> Mapping[str, float | None]:
        """What is neither spent nor promised, by limit; None where unlimited."""
        used = self.committed
        return {
            limit: None
            if getattr(self.budget, limit) is None
            else getattr(self.budget, limit) - getattr(used, limit)
            for limit in ("attempts", "tokens", "dollars")
        }
