"""Model calls whose outcome nobody knows: cut by a kill, charged at what was promised for them."""

from __future__ import annotations

from milo.core.budget import Spend
from milo.core.calls import CallBook
from milo.views import text


def unsettled_words(book: CallBook | None) -> str:
    """One line for the status and the report; "" where every call is settled."""
    if book is None or not book.unsettled:
        return ""
    promised = sum((entry.amount for entry in book.unsettled), Spend())
    by_role = sorted({entry.role for entry in book.unsettled})
    return (
        f"unsettled: {text.plural(len(book.unsettled), 'call')} ({', '.join(by_role)}) cut by a "
        f"kill, charged at what was promised for them: {promised.tokens} tokens, "
        f"{text.dollars(promised.dollars)}"
    )
