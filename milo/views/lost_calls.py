"""Model calls that stand in the ledger alone, by which the budget is measured: those of attempts
that were lost, and those whose outcome nobody knows, charged at what was promised for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from milo.core.attempt import Usage
from milo.core.budget import Spend
from milo.core.calls import CallBook
from milo.views import text

LEAST_DOLLARS = 1e-6
"""Dollars are sums of floats."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unsettled:
    """How many calls, whose (target, mutator, orchestrator), and what they are charged."""

    calls: int = 0
    roles: tuple[str, ...] = ()
    tokens: int = 0
    dollars: float = 0.0


def unsettled_of(book: CallBook | None) -> Unsettled:
    """What the ledger of a run says of them; nothing where it keeps none."""
    lost = book.unsettled if book is not None else ()
    promised = sum((entry.amount for entry in lost), Spend())
    return Unsettled(
        calls=len(lost),
        roles=tuple(sorted({entry.role for entry in lost})),
        tokens=promised.tokens,
        dollars=promised.dollars,
    )


def unsettled_words(lost: Unsettled) -> str:
    """One line for the status and the report; "" where every call is settled."""
    if not lost.calls:
        return ""
    return (
        f"unsettled: {text.plural(lost.calls, 'call')} ({', '.join(lost.roles)}) cut by a "
        "kill, charged at what was promised for them: "
        f"{_amount(Spend(tokens=lost.tokens, dollars=lost.dollars))}"
    )


def unrecorded_words(book: CallBook | None, recorded: Iterable[Usage]) -> str:
    """One line that tells the whole bill where it is more than what the records add up to; ""
    where it is the same."""
    if book is None:
        return ""
    judges = book.spent["judge"]  # told in a line of their own
    more = book.total - sum((Spend.of(usage) for usage in recorded), judges)
    if more.tokens <= 0 and more.dollars < LEAST_DOLLARS:
        return ""
    return (
        f"paid in all: {_amount(book.total)}; {_amount(more)} of it for calls of no attempt on "
        "record (first checks, attempts under way, cut or lost)"
    )


def _amount(spent: Spend) -> str:
    """Tokens, and dollars where there are any: an unknown price adds none."""
    money = f", {text.dollars(spent.dollars)}" if spent.dollars >= LEAST_DOLLARS else ""
    return f"{spent.tokens} tokens{money}"
