"""Paired tests: exact where they can be, calibrated, and adjusted for many comparisons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milo.protocols.paired import holm, paired_test, sign_flip_p, sign_test_p

differences = st.lists(st.floats(-1, 1, width=16), min_size=1, max_size=12)
p_values = st.lists(st.floats(0, 1), max_size=8)


@given(differences)
def test_a_p_value_does_not_depend_on_direction_or_order(values: list[float]) -> None:
    rng = np.random.default_rng(0)
    p = sign_flip_p(values, rng)
    assert 0 < p <= 1
    assert sign_flip_p([-v for v in values], rng) == p
    assert sign_flip_p(sorted(values), rng) == pytest.approx(p)
    assert sign_flip_p([*values, 0.0], rng) == p


def test_the_test_is_exact_for_few_tasks(rng: np.random.Generator) -> None:
    assert sign_flip_p([1.0] * 6, rng) == 2 / 64
    assert sign_flip_p([1.0, 1.0, -1.0], rng) == 1.0
    assert sign_flip_p([0.0, 0.0], rng) == 1.0


def test_random_signs_agree_with_all_signs(rng: np.random.Generator) -> None:
    values = [0.5, 0.25, -0.25, 1.0, 0.5, 0.75, -0.5, 0.25, 1.0, 0.5, 0.25, 0.5, -0.25, 0.5]
    exact = sign_flip_p(values, rng)
    # A fifteenth value too small to matter takes the sampled way.
    assert sign_flip_p([*values, 1e-9], rng) == pytest.approx(exact, abs=0.01)


def test_under_the_null_small_p_values_are_as_rare_as_they_say(rng: np.random.Generator) -> None:
    found = [sign_flip_p(list(rng.normal(size=12)), rng) for _ in range(400)]
    assert 0.02 <= np.mean(np.array(found) <= 0.05) <= 0.085


def test_the_sign_test_counts_winners_only() -> None:
    assert sign_test_p([0.1, 0.2, 0.3, 0.4, 0.5]) == 2 / 32
    assert sign_test_p([0.1, -0.2, 0.0]) == 1.0
    assert sign_test_p([]) == 1.0


@given(p_values)
def test_holm_never_lowers_a_p_value_and_keeps_their_order(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(p <= q <= 1 for p, q in zip(values, adjusted, strict=True))
    order = sorted(range(len(values)), key=lambda i: values[i])
    assert [adjusted[i] for i in order] == sorted(adjusted)


def test_holm_multiplies_the_smallest_by_the_number_of_comparisons() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])


def test_a_paired_test_reports_difference_interval_and_tasks(rng: np.random.Generator) -> None:
    found = paired_test([0.5, 0.5, 0.0, 1.0], rng)
    assert found.tasks == 4
    assert found.difference.mean == 0.5
    assert found.p_value == 0.25
