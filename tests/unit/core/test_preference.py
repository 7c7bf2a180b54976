"""Judge-order averaging: position can't matter, and a failed judgement is no zero."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milo.core.preference import Choice, both_orders

maybe = st.one_of(st.none(), st.sampled_from(Choice))
rows = st.lists(st.tuples(maybe, maybe, st.floats(0.1, 5)), max_size=8)
CHOICES = list(Choice)


@pytest.mark.parametrize("always", CHOICES)
def test_a_judge_that_only_looks_at_position_prefers_nobody(always: Choice) -> None:
    assert both_orders([always] * 3, [always] * 3).score == pytest.approx(0.5)


@given(rows)
def test_the_other_side_gets_what_is_left(case: list[tuple[Choice, Choice, float]]) -> None:
    first, second = [row[0] for row in case], [row[1] for row in case]
    weights = [row[2] for row in case]
    mine, theirs = both_orders(first, second, weights), both_orders(second, first, weights)
    assert mine.judged == theirs.judged <= mine.criteria
    if mine.score is None:
        assert theirs.score is None and mine.judged == 0
    else:
        assert theirs.score is not None
        assert mine.score + theirs.score == pytest.approx(1.0)


@given(rows, rows)
def test_a_failed_judgement_changes_no_score(
    case: list[tuple[Choice, Choice, float]], more: list[tuple[Choice, Choice, float]]
) -> None:
    failed = [(None, row[1], row[2]) for row in more]
    plain, padded = (
        both_orders(*([row[i] for row in all_] for i in range(3)))  # type: ignore[arg-type]
        for all_ in (case, case + failed)
    )
    assert plain.score == padded.score
    assert padded.criteria == len(case) + len(more)


def test_a_clear_preference_in_both_orders_is_a_whole_win() -> None:
    assert both_orders([Choice.FIRST], [Choice.SECOND]).score == 1.0
    assert both_orders([Choice.FIRST], [Choice.TIE]).score == 0.75
