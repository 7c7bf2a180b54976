"""What is said of calls that stand in the ledger alone."""

from __future__ import annotations

from milo.core.attempt import Usage
from milo.core.budget import Spend
from milo.core.calls import CallBook, CallEntry, CallMark
from milo.views.lost_calls import Unsettled, unrecorded_words, unsettled_of, unsettled_words


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


def test_an_unknown_price_is_shown_as_no_dollars() -> None:
    made = CallBook()
    made.apply(CallEntry(mark=CallMark.UNSETTLED, role="target", amount=Spend(tokens=9)))
    assert unsettled_words(unsettled_of(made)).endswith("9 tokens")


def test_the_bill_is_told_where_the_records_hold_less() -> None:
    """The budget is measured by the ledger: a lost attempt was paid for too."""
    words = unrecorded_words(
        book(CallMark.SETTLED, CallMark.SETTLED, CallMark.UNSETTLED),
        [Usage(uncached_input=80, dollars=0.2), Usage(output=20, dollars=0.05)],
    )
    assert "300 tokens, $0.75" in words and "200 tokens, $0.50 of it" in words


def test_a_bill_that_the_records_add_up_to_is_not_told_again() -> None:
    spent = [Usage(output=100, dollars=0.25)]
    assert unrecorded_words(book(CallMark.SETTLED), spent) == unrecorded_words(None, spent) == ""
