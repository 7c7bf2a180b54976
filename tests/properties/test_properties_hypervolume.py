"""Laws of the hypervolume and its gain over random fronts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from milo.core.fitness import Fitness
from milo.core.hypervolume import Frame, hypervolume, hypervolume_gain, nondominated

REF = (1.0, 1.0, 1.0)
# Multiples of 1/16, so that ties, duplicates and boundary points are common and sums exact.
COORDINATE = st.integers(0, 17).map(lambda i: i / 16)
FRONTS = st.integers(0, 8).flatmap(lambda n: arrays(float, (n, 3), elements=COORDINATE))
POINTS = arrays(float, 3, elements=COORDINATE)
LAWS = settings(max_examples=150, deadline=None)


@LAWS
@given(FRONTS, POINTS)
def test_gain_is_what_the_front_grows_by_and_never_negative(front, child):
    gain = hypervolume_gain(front, child, REF)
    grown = hypervolume(np.vstack([front, child[None]]), REF)
    assert gain == pytest.approx(grown - hypervolume(front, REF), abs=1e-12)
    assert gain >= 0.0


@LAWS
@given(FRONTS, POINTS, st.randoms())
def test_order_does_not_matter(front, child, random):
    order = list(range(len(front)))
    random.shuffle(order)
    assert hypervolume(front[order], REF) == pytest.approx(hypervolume(front, REF), abs=1e-12)
    assert hypervolume_gain(front[order], child, REF) == pytest.approx(
        hypervolume_gain(front, child, REF), abs=1e-12
    )


@LAWS
@given(FRONTS, POINTS)
def test_a_duplicate_or_a_dominated_child_gains_exactly_nothing(front, child):
    with_child = np.vstack([front, child[None]])
    assert hypervolume_gain(with_child, child, REF) == 0.0
    assert hypervolume_gain(with_child, np.minimum(child + 1 / 16, 2.0), REF) == 0.0


@LAWS
@given(FRONTS, POINTS)
def test_a_child_that_dominates_another_gains_at_least_as_much(front, child):
    better = np.maximum(child - 1 / 16, 0.0)
    less = hypervolume_gain(front, child, REF)
    assert hypervolume_gain(front, better, REF) >= less - 1e-12


@LAWS
@given(FRONTS, POINTS, st.integers(0, 2))
def test_a_point_on_the_references_boundary_contributes_nothing(front, child, axis):
    edge = child.copy()
    edge[axis] = 1.0
    assert hypervolume_gain(front, edge, REF) == 0.0
    grown = np.vstack([front, edge[None]])
    assert hypervolume(grown, REF) == pytest.approx(hypervolume(front, REF), abs=1e-12)


@LAWS
@given(FRONTS, POINTS, st.sampled_from([math.nan, math.inf, -math.inf]), st.integers(0, 2))
def test_non_finite_points_are_always_refused(front, child, bad, axis):
    broken = child.copy()
    broken[axis] = bad
    with pytest.raises(ValueError, match="finite"):
        hypervolume_gain(front, broken, REF)
    with pytest.raises(ValueError, match="finite"):
        hypervolume(np.vstack([front, broken[None]]), REF)


@LAWS
@given(st.lists(st.builds(Fitness, COORDINATE, COORDINATE, COORDINATE), min_size=1, max_size=10))
def test_the_front_holds_all_the_volume_and_no_dominated_member(fitness):
    frame = Frame(seed_accuracy=0.5, token_scale=1.0, latency_scale=1.0)
    front = [fitness[i] for i in nondominated(fitness)]
    whole = hypervolume(frame.points(fitness), frame.reference)
    assert hypervolume(frame.points(front), frame.reference) == pytest.approx(whole, abs=1e-12)
    assert not any(a.dominates(b) for a in front for b in front)
    assert len(set(front)) == len(front)
