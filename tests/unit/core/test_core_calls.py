"""The ledger of model calls as a fold of its entries, and declared rates."""

from __future__ import annotations

from itertools import pairwise

import pytest

from milo.core.budget import ROLES, Spend
from milo.core.calls import CallBook, CallEntry, CallMark, base
from milo.core.rates import Buckets, Rates


def entry(
    mark: CallMark, call: str, tokens: int, *, scope: str = "a/b", role: str = "target"
) -> CallEntry:
    amount = Spend(tokens=tokens, dollars=tokens / 1000)
    return CallEntry(mark=mark, role=role, call=call, scope=scope, amount=amount)


def book(*entries: CallEntry) -> CallBook:
    made = CallBook()
    for one in entries:
        made.apply(one)
    return made


def test_a_call_is_promised_and_then_costs_what_it_cost() -> None:
    reserved = entry(CallMark.RESERVED, "1", 100)
    open_book = book(reserved)
    assert open_book.promised.tokens == 100 and open_book.total == Spend()
    settled = book(reserved, entry(CallMark.SETTLED, "1", 30))
    assert settled.promised == Spend() and settled.total.tokens == 30 and not settled.unsettled


def test_what_was_in_flight_at_a_kill_stays_unsettled_at_its_promise() -> None:
    made = book(entry(CallMark.RESERVED, "1", 100), entry(CallMark.RESERVED, "2", 50))
    for orphan in made.orphans():
        made.apply(orphan)
    assert made.total.tokens == 150 and not made.open
    assert [one.call for one in made.unsettled] == ["1", "2"]


def test_only_the_calls_of_a_scope_and_below_it_are_given_up() -> None:
    made = book(
        entry(CallMark.RESERVED, "1", 1, scope="mutator/i1.2"),
        entry(CallMark.RESERVED, "2", 1, scope="mutator/i1.2/0"),
        entry(CallMark.RESERVED, "3", 1, scope="mutator/i1.20/0"),
    )
    assert [one.call for one in made.orphans("mutator/i1.2")] == ["1", "2"]


def test_usage_that_no_call_showed_is_claimed_once() -> None:
    made = book(entry(CallMark.RESERVED, "1", 100), entry(CallMark.SETTLED, "1", 30))
    assert made.claim(("a/b",), Spend(tokens=50, dollars=0.03)) == Spend(tokens=20, dollars=0.0)
    assert made.claim(("a/b",), Spend(tokens=5)) == Spend(tokens=5)


def test_a_renewed_book_says_the_same_in_fewer_entries() -> None:
    made = book(
        *(entry(CallMark.RESERVED, str(n), 10) for n in range(20)),
        *(entry(CallMark.SETTLED, str(n), 7) for n in range(15)),
        entry(CallMark.UNSETTLED, "15", 10),
        entry(CallMark.CHARGED, "", 5, role="mutator"),
    )
    kept = list(made.entries())
    again = book(*kept)
    assert len(kept) == len(ROLES) + 1 + 4
    assert {role: spend.tokens for role, spend in again.spent.items()} == {
        "target": 115,
        "mutator": 5,
        "orchestrator": 0,
        "judge": 0,
    }
    assert again.open.keys() == made.open.keys() and again.promised.tokens == 40
    assert again.unsettled == made.unsettled


def test_spending_from_before_there_was_a_book_is_its_first_entries() -> None:
    spent = {"target": Spend(attempts=9, tokens=10, dollars=1.0), "mutator": Spend()}
    (only,) = base(spent)
    assert (only.role, only.amount) == ("target", Spend(tokens=10, dollars=1.0))


@pytest.mark.parametrize("rates", [Rates(requests=60), Rates(tokens=600)])
def test_a_rate_lets_a_minute_s_worth_go_and_then_one_each_second(rates: Rates) -> None:
    buckets, now, went = Buckets(rates, 0.0), 0.0, []
    while len(went) < 120:
        now += buckets.wait_s(10, now)
        buckets.take(10, now)
        went.append(now)
    assert went[59] == 0.0 and went[60] == pytest.approx(1.0)
    assert all(b - a == pytest.approx(1.0) for a, b in pairwise(went[60:]))


def test_a_call_larger_than_a_minute_s_worth_goes_when_the_bucket_is_full() -> None:
    buckets = Buckets(Rates(tokens=600), 0.0)
    assert buckets.wait_s(6000, 0.0) == 0.0
    buckets.take(6000, 0.0)
    assert buckets.wait_s(10, 0.0) == pytest.approx((6000 - 600 + 10) / 10)


def test_undeclared_rates_hold_nobody_up() -> None:
    buckets = Buckets(Rates(), 0.0)
    assert not Rates().bind and buckets.wait_s(10**9, 0.0) == 0.0
