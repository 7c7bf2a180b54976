from __future__ import annotations

import pytest
from island_driver import evaluation_of

from milo.core.errors import RecordError
from milo.core.plan import WinnerRule
from milo.search.progress import Standing, choose_winner

TASKS = tuple(f"s{i:02}" for i in range(10))
STRONG = evaluation_of([1.0] * 9 + [0.0], tokens=500.0)
NEAR = evaluation_of([1.0] * 8 + [0.0, 1.0], tokens=200.0)
SLOW = evaluation_of([1.0] * 8 + [0.0, 1.0], tokens=200.0, latency=2.0)
WEAK = evaluation_of([0.0] * 10, tokens=1.0)


def test_only_a_strictly_better_accuracy_resets_the_stall():
    standing = Standing(stall=2, best=0.5)
    assert standing.after(0.5) == Standing(stall=3, best=0.5)
    assert standing.after(None) == Standing(stall=3, best=0.5)
    assert standing.after(0.51) == Standing(stall=0, best=0.51)
    assert standing.is_stalled(2)
    assert not standing.is_stalled(3)


def test_one_se_takes_the_cheapest_then_fastest_within_a_paired_standard_error():
    choice = choose_winner(
        {"strong": STRONG, "slow": SLOW, "near": NEAR, "weak": WEAK}, TASKS, WinnerRule.ONE_SE
    )
    assert choice.candidate == "near"
    assert "fewest tokens" in choice.words


def test_the_standard_error_is_paired_not_that_of_each_accuracy():
    """A candidate that is a little worse on every task is clearly worse."""
    best = evaluation_of([1.0, 0.5] * 5, tokens=500.0)
    worse = evaluation_of([0.9, 0.4] * 5, tokens=10.0)
    choice = choose_winner({"best": best, "worse": worse}, TASKS, WinnerRule.ONE_SE)
    assert choice.candidate == "best"


def test_accuracy_takes_the_best_alone_ties_by_tokens():
    both = {"strong": STRONG, "near": NEAR, "weak": WEAK}
    assert choose_winner(both, TASKS, WinnerRule.ACCURACY).candidate == "near"
    best = {"top": evaluation_of([1.0] * 10, tokens=900.0), **both}
    assert choose_winner(best, TASKS, WinnerRule.ACCURACY).candidate == "top"


def test_the_validated_front_is_shown_the_most_accurate_first():
    top = evaluation_of([1.0] * 10, tokens=900.0)
    choice = choose_winner(
        {"weak": WEAK, "strong": STRONG, "near": NEAR, "top": top}, TASKS, WinnerRule.ACCURACY
    )
    assert choice.front == ("top", "near", "weak")


def test_candidates_without_the_whole_validation_split_are_left_out():
    partial = evaluation_of([1.0] * 3, tokens=1.0)
    both = {"partial": partial, "weak": WEAK}
    assert choose_winner(both, TASKS, WinnerRule.ONE_SE).candidate == "weak"
    with pytest.raises(RecordError, match="no candidate"):
        choose_winner({"partial": partial}, TASKS, WinnerRule.ONE_SE)


def test_on_one_task_only_a_tie_is_near_the_best():
    """What breaks without it: a harness that solves nothing wins by its tokens."""
    task = TASKS[:1]
    best, none = evaluation_of([1.0], tokens=500.0), evaluation_of([0.0], tokens=1.0)
    assert choose_winner({"best": best, "none": none}, task, WinnerRule.ONE_SE).candidate == "best"
    tie = evaluation_of([1.0], tokens=200.0)
    assert choose_winner({"best": best, "tie": tie}, task, WinnerRule.ONE_SE).candidate == "tie"
