"""Normalised gain, resolution band, LSS-λ and tiers, by their properties."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milo.core.errors import UserError
from milo.protocols.gains import (
    is_resolved,
    lss_lambda,
    mean_contrast,
    normalised_gain,
    resolution_band,
    tiers,
)

shares = st.floats(0, 1)
seeds = st.floats(0, 0.99)
grids = st.integers(1, 4).flatmap(
    lambda tasks: st.lists(
        st.lists(st.floats(-1, 1), min_size=tasks, max_size=tasks), min_size=1, max_size=5
    )
)


def table(grid: list[list[float]]) -> dict[str, dict[str, list[float]]]:
    return {f"m{i}": {f"t{j}": [g] for j, g in enumerate(row)} for i, row in enumerate(grid)}


@given(shares, seeds)
def test_a_gain_is_at_most_one_and_has_the_sign_of_the_difference(e: float, seed: float) -> None:
    gain = normalised_gain(e, seed)
    assert gain <= 1 + 1e-12
    assert (gain > 0) == (e > seed) and (gain < 0) == (e < seed)


@given(seeds)
def test_the_seed_itself_gains_nothing_and_a_perfect_candidate_everything(seed: float) -> None:
    assert normalised_gain(seed, seed) == 0
    assert normalised_gain(1.0, seed) == pytest.approx(1.0)


@pytest.mark.parametrize(("candidate", "seed"), [(0.5, 1.0), (1.2, 0.5), (math.nan, 0.5)])
def test_scores_without_a_meaning_are_refused(candidate: float, seed: float) -> None:
    with pytest.raises(UserError, match="score of the"):
        normalised_gain(candidate, seed)


@given(st.lists(st.tuples(shares, shares), min_size=1), seeds, st.integers(1, 9))
def test_the_band_falls_with_the_root_of_the_attempts(
    twice: list[tuple[float, float]], seed: float, k: int
) -> None:
    one = resolution_band(twice, seed, held_out_with=1)
    assert resolution_band(twice, seed, held_out_with=k) == pytest.approx(one / math.sqrt(k))
    assert resolution_band(twice, seed, scored_with=k, held_out_with=k) == pytest.approx(one)


def test_a_band_needs_a_second_scoring() -> None:
    with pytest.raises(UserError, match="scored twice"):
        resolution_band([], 0.5)


@given(grids, st.floats(-1, 1))
def test_lambdas_sum_to_zero_and_ignore_how_hard_a_task_is(
    grid: list[list[float]], shift: float
) -> None:
    effects = lss_lambda(table(grid))
    assert sum(effects.values()) == pytest.approx(0, abs=1e-9)
    easier = [[g + shift * (j == 0) for j, g in enumerate(row)] for row in grid]
    assert lss_lambda(table(easier)) == pytest.approx(effects, abs=1e-9)


def test_replicates_are_averaged_before_tasks() -> None:
    often = {"a": {"x": [0.0, 0.0, 0.9], "y": [0.6]}, "b": {"x": [0.3], "y": [0.0]}}
    once = {"a": {"x": [0.3], "y": [0.6]}, "b": {"x": [0.3], "y": [0.0]}}
    assert lss_lambda(often) == pytest.approx(lss_lambda(once))


@pytest.mark.parametrize("gains", [{}, {"a": {"x": [0.1]}, "b": {}}, {"a": {"x": []}}])
def test_an_unbalanced_grid_is_refused(gains: dict[str, dict[str, list[float]]]) -> None:
    with pytest.raises(UserError, match="gain"):
        lss_lambda(gains)


@given(st.dictionaries(st.text(max_size=3), st.floats(-1, 1), max_size=8), st.floats(0, 1))
def test_tiers_follow_the_order_and_part_only_at_resolved_gaps(
    scores: dict[str, float], band: float
) -> None:
    found = tiers(scores, band)
    order = sorted(scores, key=lambda name: -scores[name])
    assert set(found) == set(scores)
    for above, below in pairwise(order):
        step = found[below] - found[above]
        assert step == int(is_resolved(scores[above], scores[below], band))


def test_a_contrast_is_the_mean_distance_within_groups() -> None:
    assert mean_contrast([[0.0, 0.2], [0.5, 0.1, 0.3]]) == pytest.approx(
        (0.2 + 0.4 + 0.2 + 0.2) / 4
    )
