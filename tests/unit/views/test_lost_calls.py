"""What is said of calls that a kill cut."""

from __future__ import annotations

from milo.core.budget import Spend
from milo.core.calls import CallBook, CallEntry, CallMark
from milo.views.lost_calls import Unsettled, unsettled_of, unsettled_words


def book(*marks: CallMark) -> CallBook:
    made = CallBook()
    for number, mark in enumerate(marks):
        made.apply(
            CallEntry(
                mark=mark,
                role="target",
                call=str(number),
                scope="a",
                amount=Spend(tokens=100, dollars=0.25),
            )
        )
    return made


def test_unsettled_calls_are_counted_with_what_they_are_charged() -> None:
    lost = unsettled_of(book(CallMark.UNSETTLED, CallMark.SETTLED, CallMark.UNSETTLED))
    assert lost == Unsettled(calls=2, roles=("target",), tokens=200, dollars=0.5)
    words = unsettled_words(lost)
    assert "2 calls (target)" in words and "200 tokens" in words and "0.5" in words


def test_nothing_is_said_where_every_call_is_settled() -> None:
    for settled in (book(CallMark.SETTLED), None):
        assert unsettled_words(unsettled_of(settled)) == ""
