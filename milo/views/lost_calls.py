"""Model calls whose outcome nobody knows: cut by a kill, charged at what was promised for them."""

from __future__ import annotations

from dataclasses import dataclass

from milo.core.budget import Spend
from milo.core.calls import CallBook
from milo.views import text


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
        f"kill, charged at what was promised for them: {lost.tokens} tokens, "
        f"{text.dollars(lost.dollars)}"
    )
