"""Model calls as the ledger knows them: promised before each is made, settled after (SPEC §4, end).

The money of a run is the fold of its call entries, so that it survives any kill: a call whose
writer died before it was settled stands as `unsettled`, charged at what was promised for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from milo.core.budget import ROLES, Spend

SPENT = "budget: "
"""How the fault of a model session begins that the run's budget ended."""


class CallMark(StrEnum):
    """What an entry says of a call; a charge is spending that was seen in no call."""

    RESERVED = "reserved"
    SETTLED = "settled"
    UNSETTLED = "unsettled"
    CHARGED = "charged"


@dataclass(frozen=True, kw_only=True, slots=True)
class CallEntry:
    """One line of the ledger. `amount` holds tokens and dollars: what was promised, what was spent.

    `scope` names the model session (an attempt's key, a mutator's round); a charge has no `call`.
    """

    mark: CallMark
    role: str
    call: str = ""
    scope: str = ""
    amount: Spend = field(default_factory=Spend)


class Purse(Protocol):
    """Who pays for model calls: one for all actors of a run, reached from any process."""

    async def reserve_call(self, call: str, role: str, scope: str, amount: Spend) -> None:
        """Promise what a call (a unique name) may cost; on record when this returns.

        Waits while calls in flight hold what it needs, or a declared rate has no turn for it;
        raises `BudgetSpent` where the run's limits can't pay it. A caller that stops waiting must
        settle the call with nothing.
        """
        ...

    async def settle_call(self, call: str, amount: Spend) -> None:
        """What the call cost in place of its promise; an unknown call is left alone."""
        ...


class CallBook:
    """The fold of call entries. One owner.

    `spent` is by role and holds tokens and dollars; `open` are calls in flight by name.
    """

    def __init__(self) -> None:
        self.spent: dict[str, Spend] = {role: Spend() for role in ROLES}
        self.open: dict[str, CallEntry] = {}
        self.unsettled: list[CallEntry] = []
        self._unclaimed: dict[str, Spend] = {}
        self._promised = Spend()

    @property
    def total(self) -> Spend:
        """Everything spent."""
        return sum(self.spent.values(), Spend())

    @property
    def promised(self) -> Spend:
        """What the calls in flight may cost."""
        return self._promised

    def apply(self, entry: CallEntry) -> None:
        """Fold one entry in."""
        if entry.mark is CallMark.RESERVED:
            self.open[entry.call] = entry
            self._promised += entry.amount
            return
        self._close(entry.call)
        self.spent[entry.role] += entry.amount
        if entry.mark is CallMark.UNSETTLED:
            self.unsettled.append(entry)
        if entry.mark is not CallMark.CHARGED:
            self._unclaimed[entry.scope] = self._unclaimed.get(entry.scope, Spend()) + entry.amount

    def _close(self, call: str) -> None:
        over = self.open.pop(call, None)
        if over is not None:
            # Sums of floats drift: with nothing in flight nothing is promised.
            self._promised = self._promised - over.amount if self.open else Spend()

    def orphans(self, scope: str | None = None) -> tuple[CallEntry, ...]:
        """The entries that give up calls in flight: of a scope (or of those below it), or all."""
        return tuple(
            CallEntry(
                mark=CallMark.UNSETTLED,
                role=entry.role,
                call=entry.call,
                scope=entry.scope,
                amount=entry.amount,
            )
            for entry in self.open.values()
            if scope is None or _below(entry.scope, scope)
        )

    def claim(self, scopes: Sequence[str], usage: Spend) -> Spend:
        """What of a finished piece's usage was seen in no call of its scopes, or of those below
        them; they are forgotten."""
        seen = Spend()
        for name in [n for n in self._unclaimed if any(_below(n, scope) for scope in scopes)]:
            seen += self._unclaimed.pop(name)
        return Spend(
            tokens=max(0, usage.tokens - seen.tokens),
            dollars=max(0.0, usage.dollars - seen.dollars),
        )

    def forget_scopes(self) -> None:
        """Whatever goes on from here is a new session: what a killed one saw claims nothing."""
        self._unclaimed.clear()

    def entries(self) -> Iterator[CallEntry]:
        """The same book in as few entries as it needs: one charge a role, and what is not over."""
        lost = {role: Spend() for role in ROLES}
        for entry in self.unsettled:
            lost[entry.role] += entry.amount
        for role, spent in self.spent.items():
            yield CallEntry(mark=CallMark.CHARGED, role=role, amount=spent - lost[role])
        yield from self.unsettled
        yield from self.open.values()


def base(spent: Mapping[str, Spend]) -> Sequence[CallEntry]:
    """The entries that stand for spending that was recorded before there was a book."""
    return tuple(
        CallEntry(
            mark=CallMark.CHARGED,
            role=role,
            amount=Spend(tokens=amount.tokens, dollars=amount.dollars),
        )
        for role, amount in spent.items()
        if amount.tokens or amount.dollars
    )


def _below(name: str, scope: str) -> bool:
    return name == scope or name.startswith(f"{scope}/")
