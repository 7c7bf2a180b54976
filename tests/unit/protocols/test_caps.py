"""Disclosure levels, and the account that keeps a search within its caps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_scene import outcome

from milo.core.errors import BudgetExceeded
from milo.core.events import CandidateScored, Record
from milo.core.fitness import TaskScore
from milo.protocols.caps import POLICY, Account, Disclosure, ProtocolCaps, audited, disclose

EVALUATION = {
    "a": TaskScore(n=1, reward=1.0, resolved=1, tokens=5, latency_s=1),
    "b": TaskScore(n=1, reward=0.0, resolved=0, tokens=5, latency_s=1),
}
SIZES = {"search": 10, "validation": 20}
charges = st.lists(
    st.tuples(st.sampled_from(["search", "validation"]), st.integers(0, 25), st.integers(0, 300)),
    max_size=30,
)


def test_each_split_shows_what_the_protocol_lets_it_show() -> None:
    shown = {split: disclose(EVALUATION, level) for split, level in POLICY.items()}
    assert shown["search"].cases == EVALUATION and shown["search"].traces
    assert shown["validation"].score == 0.5
    assert not shown["validation"].cases and not shown["validation"].traces
    assert shown["test"].score is None and not shown["test"].cases


def test_an_empty_evaluation_shows_nothing() -> None:
    assert disclose({}, Disclosure.FULL).score is None


@given(charges)
def test_no_sequence_of_charges_gets_past_a_cap(case: list[tuple[str, int, int]]) -> None:
    caps = ProtocolCaps(calls=6, passes=2.5, tokens=900)
    account = Account(caps, SIZES)
    for split, attempts, tokens in case:
        before = (dict(account.calls), dict(account.attempts), account.tokens)
        try:
            account.charge(split, attempts=attempts, tokens=tokens)
        except BudgetExceeded:
            assert before == (account.calls, account.attempts, account.tokens)
    assert not account.exceeded()
    assert max(account.calls.values()) <= 6 and account.tokens <= 900
    assert all(account.passes(split) <= 2.5 for split in SIZES)


def test_caps_of_none_bind_nobody() -> None:
    account = Account(ProtocolCaps(calls=None, passes=None, tokens=None), SIZES)
    for _ in range(200):
        account.charge("search", attempts=100, tokens=10**6)
    assert not account.exceeded()


def test_the_test_split_may_not_be_evaluated() -> None:
    with pytest.raises(BudgetExceeded, match="the test split may not be evaluated"):
        Account(ProtocolCaps(), SIZES).charge("test", attempts=1)


def test_an_audit_counts_recorded_evaluations_and_attempts_by_split() -> None:
    scored = [
        Record(
            seq=i,
            time=0.0,
            shard="i1",
            epoch=1,
            event=CandidateScored(island="i1", candidate="i1.0", split=split, scores=EVALUATION),
        )
        for i, split in enumerate(["search", "search", "validation", "test"])
    ]
    outcomes = [outcome("h", task, 1.0, i) for task in ("a", "v", "x") for i in range(15)]
    where = {"a": "search", "v": "validation"}
    account = audited(Account(ProtocolCaps(calls=2, passes=1), SIZES), scored, outcomes, where)
    assert account.calls == {"search": 2, "validation": 1}
    assert account.passes("search") == 1.5 and account.passes("validation") == 0.75
    assert account.tokens == 30 * 120
    assert account.exceeded() == ("1.50 case passes on search, 1 are allowed",)
