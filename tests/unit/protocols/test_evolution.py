"""Overall, AnytimeVal, Sens and Perf, by their properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from milo.core.errors import UserError
from milo.protocols.evolution import (
    PAPER_WEIGHTS,
    anytime_value,
    overall,
    performance,
    sensitivity,
)

scores = st.lists(st.floats(0, 100), min_size=1, max_size=12)
matrices = st.tuples(st.integers(2, 7), st.integers(2, 6)).flatmap(
    lambda shape: arrays(float, shape, elements=st.floats(0, 1, width=16))
)


@given(st.fixed_dictionaries({name: st.floats(0, 100) for name in PAPER_WEIGHTS}))
def test_overall_lies_between_the_worst_and_the_best_domain(domains: dict[str, float]) -> None:
    value = overall(domains, PAPER_WEIGHTS)
    assert min(domains.values()) - 1e-9 <= value <= max(domains.values()) + 1e-9
    doubled = {name: 2 * weight for name, weight in PAPER_WEIGHTS.items()}
    assert overall(domains, doubled) == pytest.approx(value)


def test_overall_without_weights_is_the_plain_mean() -> None:
    assert overall({"a": 10.0, "b": 30.0}) == 20.0


@pytest.mark.parametrize("weights", [{"a": 1.0}, {"a": 0.0, "b": 0.0}, {"a": 2.0, "b": -1.0}])
def test_weights_that_do_not_fit_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(UserError, match="domain weights"):
        overall({"a": 1.0, "b": 2.0}, weights)


@given(scores, st.integers(0, 8))
def test_anytime_value_carries_the_best_forward(found: list[float], left: int) -> None:
    budget = len(found) + left
    value = anytime_value(found, budget)
    assert found[0] - 1e-9 <= value <= max(found) + 1e-9
    assert value == pytest.approx(anytime_value([*found, *[0.0] * left], budget))


@given(scores)
def test_the_same_scores_found_earlier_are_worth_at_least_as_much(found: list[float]) -> None:
    early = anytime_value(sorted(found, reverse=True), len(found))
    late = anytime_value(sorted(found), len(found))
    assert late - 1e-9 <= anytime_value(found, len(found)) <= early + 1e-9


@pytest.mark.parametrize("found", [[], [1.0, 2.0, 3.0]])
def test_scores_that_the_budget_does_not_hold_are_refused(found: list[float]) -> None:
    with pytest.raises(UserError, match="iterations"):
        anytime_value(found, 2)


@given(matrices)
def test_sensitivity_is_the_leave_one_out_correlation(matrix: np.ndarray) -> None:
    found = sensitivity(matrix)
    assert (np.abs(found) <= 1).all()
    for x in range(matrix.shape[1]):
        rest = np.delete(matrix, x, axis=1).mean(axis=1)
        if min(np.ptp(matrix[:, x]), np.ptp(rest)) > 1e-3:
            assert found[x] == pytest.approx(np.corrcoef(matrix[:, x], rest)[0, 1], abs=1e-6)


def test_a_task_that_every_harness_solves_alike_is_not_sensitive() -> None:
    matrix = np.array([[1.0, 0.1, 0.2], [1.0, 0.5, 0.4], [1.0, 0.9, 0.9]])
    found = sensitivity(matrix)
    assert found[0] == 0.0 and found[1] > 0.9
    assert performance(matrix)[0] == 1.0


@pytest.mark.parametrize("bad", [np.zeros((2, 1)), np.full((2, 3), np.nan), np.zeros(3)])
def test_a_matrix_that_is_none_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(UserError, match="scores"):
        sensitivity(bad)
