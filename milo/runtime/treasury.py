"""The treasury: the ledger of a run behind its recorder, and the one purse of all its actors.

Two layers share one budget. Islands promise what a child may cost before they begin it; each model
call promises what it may cost before it is made, and only that one is a hard limit: spent money,
calls in flight and what is kept for the final test never exceed the budget, but for what a single
call costs more than was promised for it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from time import monotonic
from typing import Protocol

from milo.core.attempt import Usage
from milo.core.budget import ROLES, Budget, Ledger, Spend
from milo.core.calls import CallBook, CallEntry, CallMark, base
from milo.core.errors import BudgetSpent
from milo.core.population import Population
from milo.core.rates import Buckets, Rates

TEST_PROMISE = "the final test"
MONEY = ("tokens", "dollars")
PACED_ROLE = "target"
"""The declared rates are those of the frozen model's provider."""

SLACK = 1e-9
"""Dollars are sums of floats."""


class CallRecords(Protocol):
    """What of the run directory the treasury writes."""

    def calls(self) -> CallBook | None:
        """The ledger of model calls; None in a run that has none yet."""
        ...

    def append_calls(self, entries: tuple[CallEntry, ...]) -> CallBook:
        """Record what became of model calls; the book with it."""
        ...

    def spent_by_attempts(self) -> tuple[int, Usage]:
        """How many attempts are on record, and their usage."""
        ...


class Treasury:
    """Implements `core.calls.Purse` on one event loop. One owner, which keeps the records.

    `rates` are the provider's declared limits for the target; waiting scopes take turns. A replay
    asks no provider for anything: there calls are counted, and nothing is `hard`.
    """

    def __init__(
        self,
        budget: Budget,
        records: CallRecords,
        population: Population,
        rates: Rates = Rates(),  # noqa: B008
        now: Callable[[], float] = monotonic,
        *,
        hard: bool = True,
    ) -> None:
        self.ledger = Ledger(budget)
        self._records = records
        self._refused = ""
        self._now = now
        self._hard = hard
        self._buckets = Buckets(rates, now()) if hard and rates.bind else None
        self._lines: OrderedDict[str, deque[_Waiting]] = OrderedDict()
        self._waiting: dict[str, _Waiting] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._book = self._open(population)

    def _open(self, population: Population) -> CallBook:
        """Charge the past: by the book where there is one, else by what is on record."""
        attempts, usage = self._records.spent_by_attempts()
        book = self._records.calls()
        if book is None:
            book = self._records.append_calls(tuple(base(_recorded(population, usage))))
        book = self._records.append_calls(book.orphans())
        book.forget_scopes()
        for role, spent in book.spent.items():
            self.ledger.settle("", role, spent)
        self.ledger.settle("", "target", Spend(attempts=attempts))
        return book

    @property
    def refused(self) -> str:
        """The limit that refused a call; "" where none did."""
        return self._refused

    # --- calls ---------------------------------------------------------------------------------

    async def reserve_call(self, call: str, role: str, scope: str, amount: Spend) -> None:
        """As `Purse` says. Waits for other calls to be settled, or for a turn under the rates."""
        entry = CallEntry(
            mark=CallMark.RESERVED,
            role=role,
            call=call,
            scope=scope,
            amount=Spend(tokens=amount.tokens, dollars=amount.dollars),
        )
        waiting = _Waiting(entry)
        self._waiting[call] = waiting
        self._lines.setdefault(scope, deque()).append(waiting)
        self._admit()
        try:
            await waiting.turn  # given by _admit: at once, when a call ends, or a bucket fills
        except asyncio.CancelledError:
            self._withdraw(call)  # who comes after is looked at when the next call ends
            raise

    async def settle_call(self, call: str, amount: Spend) -> None:
        """What a call cost; one that still waits is withdrawn."""
        self._withdraw(call)
        entry = self._book.open.get(call)
        if entry is not None:
            spent = Spend(tokens=amount.tokens, dollars=amount.dollars)
            self._write(
                CallEntry(
                    mark=CallMark.SETTLED,
                    role=entry.role,
                    call=call,
                    scope=entry.scope,
                    amount=spent,
                )
            )
        self._admit()

    def forsake(self, scope: str) -> None:
        """Whoever made the calls of a scope, or below it, is gone: those in flight are charged as
        promised."""
        if self._book.open:
            self._write(*self._book.orphans(scope))
            self._admit()

    def absorb(self, role: str, scopes: Sequence[str], usage: Spend) -> None:
        """Scopes have their outcome on record: what of its usage went past the gateway (a mutator
        with a model of its own) is charged beside their calls."""
        for scope in scopes:
            self.forsake(scope)
        outside = self._book.claim(scopes, usage)
        if outside.tokens or outside.dollars > SLACK:
            self._write(CallEntry(mark=CallMark.CHARGED, role=role, amount=outside))

    def _write(self, *entries: CallEntry) -> None:
        self._records.append_calls(entries)
        for entry in entries:
            if entry.mark is not CallMark.RESERVED:
                self.ledger.settle("", entry.role, entry.amount)

    # --- turns ---------------------------------------------------------------------------------

    def _admit(self) -> None:
        """Let go whoever can, one of each scope in turn, and refuse whom nothing can help.

        Who is first in turn is never overtaken by a smaller call that would go before it; only
        calls that no rate binds pass those that wait for one.
        """
        going = True
        while going:
            going = paced = False
            for scope in tuple(self._lines):
                first = self._lines[scope][0]
                if paced and first.entry.role == PACED_ROLE:
                    continue
                verdict = self._verdict(first.entry)
                if verdict is _Verdict.WAITS:
                    break
                if verdict is _Verdict.PACED:
                    paced = True
                    continue
                self._go(first, refused=verdict is _Verdict.REFUSED)
                going = True
        self._look_again()

    def _verdict(self, entry: CallEntry) -> _Verdict:
        if self._short_of(entry.amount):
            return _Verdict.WAITS if self._book.open else _Verdict.REFUSED
        return _Verdict.PACED if self._rate_wait_s(entry) > 0 else _Verdict.GOES

    def _go(self, waiting: _Waiting, *, refused: bool) -> None:
        entry = waiting.entry
        del self._waiting[entry.call]
        if refused:
            limit = self._short_of(entry.amount)
            self._refused = self._refused or limit
            waiting.end(BudgetSpent(self._words(limit, entry)))
        else:
            if self._buckets is not None and entry.role == PACED_ROLE:
                self._buckets.take(entry.amount.tokens, self._now())
            self._write(entry)
        self._leave(waiting)
        if entry.scope in self._lines:
            self._lines.move_to_end(entry.scope)

    def _withdraw(self, call: str) -> None:
        waiting = self._waiting.pop(call, None)
        if waiting is not None:
            self._leave(waiting)

    def _leave(self, waiting: _Waiting) -> None:
        line = self._lines[waiting.entry.scope]
        line.remove(waiting)
        if not line:
            del self._lines[waiting.entry.scope]
        waiting.end(None)

    def _short_of(self, amount: Spend) -> str:
        """The limit that the amount does not fit under, "" where it fits under all."""
        if not self._hard:
            return ""
        kept = self.ledger.reserved.get(TEST_PROMISE, Spend())
        wanted = self._book.total + self._book.promised + amount
        for limit in MONEY:
            cap = getattr(self.ledger.budget, limit)
            if cap is not None and getattr(wanted, limit) + getattr(kept, limit) > cap + SLACK:
                return limit
        return ""

    def _words(self, limit: str, entry: CallEntry) -> str:
        cap, spent = getattr(self.ledger.budget, limit), getattr(self._book.total, limit)
        asked = getattr(entry.amount, limit)
        return (
            f"{limit} are spent: {spent:g} of {cap:g}, and a call may cost {asked:g} "
            f"({entry.role}, {entry.scope})"
        )

    def _rate_wait_s(self, entry: CallEntry) -> float:
        if self._buckets is None or entry.role != PACED_ROLE:
            return 0.0
        return self._buckets.wait_s(entry.amount.tokens, self._now())

    def _look_again(self) -> None:
        """Wake up when a bucket will have filled for the first in line."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waits = [self._rate_wait_s(line[0].entry) for line in self._lines.values()]
        due = [wait for wait in waits if wait > 0]
        if due:
            self._timer = asyncio.get_running_loop().call_later(min(due), self._admit)


class _Verdict(Enum):
    """What becomes of the call that is first in its line."""

    GOES = auto()
    REFUSED = auto()
    WAITS = auto()
    PACED = auto()


class _Waiting:
    """A call that waits for its turn."""

    def __init__(self, entry: CallEntry) -> None:
        self.entry = entry
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(self, error: BudgetSpent | None) -> None:
        """Let it go, or refuse it; nothing where that was done."""
        if self.turn.done():
            return
        if error is None:
            self.turn.set_result(None)
        else:
            self.turn.set_exception(error)


def _recorded(population: Population, target: Usage) -> Mapping[str, Spend]:
    """What a run without a book has spent, by role."""
    spent = dict.fromkeys(ROLES, Spend())
    spent["target"] = Spend.of(target)
    for node in population.lineage:
        spent["mutator"] += Spend.of(node.usage)
    for consulted in population.consultations:
        spent["orchestrator"] += Spend.of(consulted.usage)
    return spent
