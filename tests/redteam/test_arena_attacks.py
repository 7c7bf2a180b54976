"""Attacks on the arena's verifiers: each is refused, or gains nothing over the honest value."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from milo.suites.arena.problems.catalogue import parse, problems
from milo.suites.arena.problems.problem import MAX_VALUES, Rejected, verify

PROBLEMS = problems()
FIRST = "first-autocorrelation-inequality"
SECOND = "second-autocorrelation-inequality"
THIRD = "third-autocorrelation-inequality"
OVERLAP = "erdos-min-overlap"
FUNCTIONS = (OVERLAP, FIRST, SECOND, THIRD)
SHAPE = np.random.default_rng(0).random(60)


def value(name: str, construction: object) -> float:
    problem = PROBLEMS[name]
    return verify(problem, {problem.field: construction}).value


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "true", '"1"', "null"])
def test_what_is_no_finite_number_is_refused(name: str, word: str) -> None:
    field = PROBLEMS[name].field
    with pytest.raises(Rejected):
        verify(PROBLEMS[name], parse(f'{{"{field}": [{word}, 1.0]}}'))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_integer_too_large_for_a_float_is_refused(name: str) -> None:
    with pytest.raises(Rejected):
        value(name, [10**400, 1])


@pytest.mark.parametrize("name", (FIRST, SECOND, THIRD))
def test_an_honest_scale_changes_nothing(name: str) -> None:
    honest = value(name, SHAPE.tolist())
    for scale in (1e-3, 1e6, 1e50):
        assert value(name, (SHAPE * scale).tolist()) == pytest.approx(honest, rel=1e-12)


@pytest.mark.parametrize("name", (FIRST, SECOND, THIRD))
@pytest.mark.parametrize("scale", [1e-320, 1e-170, 1e-160, 1e155, 1e200, 1e305])
def test_a_scale_at_which_floats_break_gains_nothing(name: str, scale: float) -> None:
    honest = value(name, SHAPE.tolist())
    try:
        gained = PROBLEMS[name].gain(value(name, (SHAPE * scale).tolist()), over=honest)
    except Rejected:
        return
    assert abs(gained) <= 1e-12 * honest


@pytest.mark.parametrize("name", (FIRST, SECOND))
def test_subnormal_sums_are_refused(name: str) -> None:
    with pytest.raises(Rejected):
        value(name, [5e-324] * 50)
    mixed = [5e-324, 1e-323, *[2e-162] * 30]
    with pytest.raises(Rejected):
        value(name, mixed)


def test_a_sum_next_to_zero_is_refused_by_the_third_inequality() -> None:
    with pytest.raises(Rejected, match="squared integral"):
        value(THIRD, [1.0, -1.0 + 1e-9])
    with pytest.raises(Rejected):
        value(THIRD, [1e300, -1e300])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_negative_zero_is_zero(name: str) -> None:
    with_zeros = [0.0, *(0.4 + SHAPE * 0.2).tolist(), 0.0]
    signed = [-0.0, *with_zeros[1:-1], -0.0]
    assert value(name, signed) == value(name, with_zeros)


def test_a_negative_value_is_refused_and_the_smallest_too() -> None:
    for least in (-5e-324, -1e-9):
        with pytest.raises(Rejected):
            value(FIRST, [1.0, least])
        with pytest.raises(Rejected):
            value(OVERLAP, [1.0, least])
    # The second inequality cuts off down to −1e-6 and gives nothing for it.
    assert value(SECOND, [1.0, -1e-7]) == value(SECOND, [1.0, 0.0])
    with pytest.raises(Rejected):
        value(SECOND, [1.0, -1.1e-6])


def test_all_zeros_are_refused() -> None:
    for name in FUNCTIONS:
        with pytest.raises(Rejected):
            value(name, [0.0, -0.0, 0.0])


@pytest.mark.parametrize("name", (*FUNCTIONS, "difference-bases"))
def test_a_construction_that_is_too_long_is_refused_before_it_is_computed(name: str) -> None:
    with pytest.raises(Rejected, match="at most"):
        value(name, [0.5] * (MAX_VALUES + 1))


def test_a_value_above_one_is_refused_also_after_rescaling() -> None:
    with pytest.raises(Rejected):
        value(OVERLAP, [1.0 + 1e-15, 0.0])
    with pytest.raises(Rejected):
        value(OVERLAP, [5e-324, 5e-324, 0.0])


def circles(n: int) -> list[list[float]]:
    return [[(i % 6 + 0.5) / 6, (i // 6 + 0.5) / 6, 0.05] for i in range(n)]


@pytest.mark.parametrize("name, count", [("circle-packing", 26), ("circle-packing-32", 32)])
def test_circles_that_overlap_leave_the_square_or_have_no_size_are_refused(
    name: str, count: int
) -> None:
    for i, changed in ((0, [0.25, 1 / 12, 0.05]), (1, [0.05 - 1e-12, 0.25, 0.05]), (2, [0, 0, -1])):
        attack = circles(count)
        attack[i] = changed
        with pytest.raises(Rejected):
            value(name, attack)


def test_an_overlap_within_the_tolerance_is_the_arenas_and_no_more() -> None:
    allowed, refused = circles(26), circles(26)
    touching = (1 / 6) / 2
    for attack, more in ((allowed, 0.9e-9), (refused, 2.1e-9)):
        attack[7][2] = touching
        attack[8][2] = touching + more
    assert value("circle-packing", allowed) > 26 * 0.05
    with pytest.raises(Rejected, match="overlap"):
        value("circle-packing", refused)


def test_a_rectangle_far_from_the_origin_does_not_hide_its_radii() -> None:
    for shift in (1e5, 1e16, 1e300):
        attack = [[x + shift, y, r] for x, y, r in circles(21)]
        try:
            found = value("circles-rectangle", attack)
        except Rejected:
            continue
        assert found == pytest.approx(21 * 0.05)
    with pytest.raises(Rejected):
        value("circles-rectangle", [[1e16, 1e16, 0.5]] * 21)


def test_duplicated_points_are_refused_or_worth_nothing() -> None:
    twice = [[float(i), float(i * i)] for i in range(15)]
    with pytest.raises(Rejected, match="coincide"):
        value("min-distance-ratio-2d", [*twice, twice[0]])
    sphere = np.random.default_rng(0).normal(size=(281, 3)).tolist()
    with pytest.raises(Rejected, match="coincide"):
        value("thomson-problem", [*sphere, [2 * x for x in sphere[0]]])
    with pytest.raises(Rejected):
        value("thomson-problem", [*sphere, [0.0, 0.0, 0.0]])
    convex = np.random.default_rng(0).random((13, 2)).tolist()
    assert value("heilbronn-convex", [*convex, convex[0]]) == 0.0
    with pytest.raises(Rejected, match="one line"):
        value("heilbronn-convex", [[0.5, 0.5]] * 14)


@pytest.mark.parametrize("shift", [1e6, 1e9, 1e15])
def test_points_far_from_the_origin_gain_nothing_from_rounding(shift: float) -> None:
    moved = np.random.default_rng(1).random((14, 2)) + shift
    # Moving back is exact, so it is the same figure where nothing is lost.
    honest = value("heilbronn-convex", (moved - shift).tolist())
    try:
        found = value("heilbronn-convex", moved.tolist())
    except Rejected:
        return
    assert math.isclose(found, honest, rel_tol=1e-12)


def test_points_at_a_scale_where_squares_vanish_are_refused() -> None:
    points = np.random.default_rng(1).random((16, 2))
    for scale in (1e-170, 1e170, 1e308):
        with pytest.raises(Rejected):
            value("min-distance-ratio-2d", (points * scale).tolist())


def test_integers_that_floats_merge_are_refused() -> None:
    with pytest.raises(Rejected):
        value("difference-bases", [0, 1, 2**53])
    with pytest.raises(Rejected):
        value("difference-bases", list(range(2001)))


def test_endless_nesting_and_huge_numbers_of_digits_are_refused() -> None:
    with pytest.raises(Rejected):
        parse("[" * 100_000)
    with pytest.raises(Rejected):
        parse(json.dumps({"values": [1]}).replace("1", "9" * 5000))
