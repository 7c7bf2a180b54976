"""What the models that judge tasks have cost: beside what is measured, and never part of it."""

from __future__ import annotations

from milo.core.calls import CallBook
from milo.views import text


def judging_words(book: CallBook | None) -> str:
    """One line for the report; "" where no model judged anything."""
    spent = None if book is None else book.spent["judge"]
    if spent is None or not spent.tokens:
        return ""
    return (
        f"judges: {text.count(spent.tokens)} tokens, {text.dollars(spent.dollars)}, "
        "beside what the table of roles counts"
    )
