"""The noise bar on a sample; `tests/benchmarks/bench_core.py noise` runs it in full size."""

from __future__ import annotations

import pytest
from noise_model import admission_rate

SAMPLE = 250


@pytest.mark.parametrize("equal_costs", [False, True])
def test_a_child_identical_in_behaviour_is_rarely_admitted(equal_costs):
    """If this fails, islands fill up with copies that were lucky once."""
    # 9.5 % is the bar of 6.5 % with two standard errors of this sample.
    assert admission_rate(SAMPLE, equal_costs=equal_costs) <= 0.095


def test_a_child_twenty_points_better_is_mostly_admitted():
    assert admission_rate(SAMPLE, lift=0.2) >= 0.8


def test_a_child_at_half_the_tokens_is_mostly_admitted():
    assert admission_rate(SAMPLE, cheaper=0.5) >= 0.8


def test_a_front_of_identical_members_lets_fewer_copies_in():
    assert admission_rate(SAMPLE, front=4) <= 0.05


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_small_sets_keep_the_rate_too(alpha):
    assert admission_rate(SAMPLE, n_tasks=16, k=1, alpha=alpha) <= alpha + 0.03


def test_the_plain_rule_admits_most_copies():
    """Why the evidence rule exists: luck on one of three axes is enough for the plain rule."""
    assert admission_rate(100, alpha=1.0) > 0.5
