"""The arena's problems: what is accepted, and two implementations that agree."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest

from milo.suites.arena.problems.catalogue import candidate_of, parse, problems
from milo.suites.arena.problems.functions import fft_length
from milo.suites.arena.problems.points import hull_order
from milo.suites.arena.problems.problem import Direction, Problem, Rejected, verify

PROBLEMS = problems()
OVERLAP = "erdos-min-overlap"
FIRST = "first-autocorrelation-inequality"
SECOND = "second-autocorrelation-inequality"
THIRD = "third-autocorrelation-inequality"
Made = Callable[[np.random.Generator], np.ndarray]


def value(name: str, construction: object) -> float:
    problem = PROBLEMS[name]
    return verify(problem, {problem.field: construction}).value


def balanced(rng: np.random.Generator) -> np.ndarray:
    h = rng.random(97) * 0.5
    return 0.25 + h - h.mean() + 0.25


def packed(rng: np.random.Generator, count: int) -> np.ndarray:
    grid = [(i, j) for i in range(6) for j in range(6)][:count]
    return np.array([((i + 0.5) / 6, (j + 0.5) / 6, rng.uniform(0.01, 0.08)) for i, j in grid])


def in_triangle(rng: np.random.Generator, count: int) -> np.ndarray:
    weights = rng.dirichlet((1, 1, 1), count)
    return weights @ np.array([(0, 0), (1, 0), (0.5, math.sqrt(3) / 2)])


RANDOM: dict[str, Made] = {
    OVERLAP: balanced,
    FIRST: lambda rng: rng.random(301),
    SECOND: lambda rng: rng.random(300),
    THIRD: lambda rng: rng.normal(0.5, 1.0, 299),
    "circle-packing": lambda rng: packed(rng, 26),
    "circle-packing-32": lambda rng: packed(rng, 32),
    "circles-rectangle": lambda rng: packed(rng, 21),
    "min-distance-ratio-2d": lambda rng: rng.random((16, 2)),
    "heilbronn-triangles": lambda rng: in_triangle(rng, 11),
    "heilbronn-convex-13": lambda rng: rng.random((13, 2)),
    "heilbronn-convex": lambda rng: rng.random((14, 2)),
    "thomson-problem": lambda rng: rng.normal(size=(282, 3)),
    "flat-polynomials": lambda rng: rng.choice([-1.0, 1.0], 70),
    "difference-bases": lambda rng: np.append(np.arange(9.0), rng.integers(9, 60, 5)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_two_implementations_agree_to_twelve_digits(name: str) -> None:
    problem = PROBLEMS[name]
    rng = np.random.default_rng(3)
    for _ in range(2 if name == "flat-polynomials" else 5):
        candidate = candidate_of(problem, RANDOM[name](rng))
        read = problem.read(candidate[problem.field])
        near = 1e-12 * problem.floor
        assert problem.fast(read) == pytest.approx(problem.direct(read), rel=1e-12, abs=near)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_construction_survives_the_arenas_json(name: str) -> None:
    problem = PROBLEMS[name]
    first = verify(problem, candidate_of(problem, RANDOM[name](np.random.default_rng(5))))
    text = json.dumps(candidate_of(problem, first.construction))
    again = verify(problem, parse(text))
    assert again.value == pytest.approx(first.value, rel=1e-15)
    assert np.allclose(again.construction, first.construction, rtol=1e-15, atol=0)


def test_analytic_values_are_exact() -> None:
    assert value(OVERLAP, [0.5] * 64) == 0.5
    assert value(FIRST, [1.0] * 32) == 2.0
    assert value(SECOND, [1.0]) == 2 / 3
    assert value(THIRD, [1.0] * 32) == 2.0


def test_analytic_values_of_points_signs_and_integers() -> None:
    grid = [[float(i), float(j)] for i in range(4) for j in range(4)]
    assert value("min-distance-ratio-2d", grid) == 18.0
    # 0, 1, 4, 6 is a perfect ruler: its differences are 1..6.
    assert value("difference-bases", [0, 1, 4, 6]) == 16 / 6
    assert value("flat-polynomials", [1] * 70) == pytest.approx(70 / math.sqrt(71), rel=1e-12)
    apart = [[(i + 0.5) / 6, (j + 0.5) / 6, 0.0625] for i in range(6) for j in range(6)][:26]
    assert value("circle-packing", apart) == 26 * 0.0625
    assert value("heilbronn-triangles", in_triangle(np.random.default_rng(0), 11).tolist()) > 0


def test_the_energy_of_opposite_charges_is_known() -> None:
    octahedron = np.vstack([np.eye(3), -np.eye(3)])
    direct, fast = PROBLEMS["thomson-problem"].direct, PROBLEMS["thomson-problem"].fast
    known = 12 / math.sqrt(2) + 3 / 2
    assert direct(octahedron) == pytest.approx(known, rel=1e-15)
    assert fast(octahedron) == pytest.approx(known, rel=1e-15)


def test_a_step_function_keeps_its_value_on_a_finer_grid() -> None:
    rng = np.random.default_rng(1)
    for name in (OVERLAP, FIRST, THIRD):
        coarse = RANDOM[name](rng)
        fine = value(name, np.repeat(coarse, 3).tolist())
        assert fine == pytest.approx(value(name, coarse.tolist()), rel=1e-12)


def test_the_overlap_is_rescaled_to_half_and_refused_where_that_leaves_the_range() -> None:
    assert value(OVERLAP, [0.25] * 8) == pytest.approx(0.5)
    with pytest.raises(Rejected, match="leave"):
        value(OVERLAP, [1.0, 0.0, 0.0, 0.0])


def test_the_third_inequality_takes_the_maximum_before_its_absolute_value() -> None:
    # Here the most negative value of f*f is larger in magnitude than the maximum.
    f = np.array([3.0, 0.1, -2.5])
    square = np.convolve(f, f)
    assert -square.min() > square.max()
    assert value(THIRD, f.tolist()) == pytest.approx(square.max() * 6 / f.sum() ** 2)


def test_a_box_one_too_wide_by_more_than_the_tolerance_is_refused() -> None:
    problem = PROBLEMS["circles-rectangle"]
    circles = packed(np.random.default_rng(0), 21)
    width = circles[:, 0].max() + 1.2
    circles[0, 0] -= width
    with pytest.raises(Rejected, match="exceeds 2"):
        verify(problem, candidate_of(problem, circles))


def test_duplicates_and_zero_are_read_into_a_difference_basis_once() -> None:
    assert value("difference-bases", [1, 4, 6, 6, 4]) == 16 / 6
    with pytest.raises(Rejected, match="1 is no difference"):
        value("difference-bases", [0, 2, 4])


@pytest.mark.parametrize("one", [-1, 1.5])
def test_a_difference_basis_holds_integers_from_zero_on(one: float) -> None:
    with pytest.raises(Rejected, match="integers of at least 0"):
        value("difference-bases", [0, 1, 4, 6, one])


def test_the_hull_of_a_square_with_points_inside_is_its_corners() -> None:
    corners = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    points = np.array([[0.5, 0.5], [0.5, 0.0], *corners, [0.2, 0.9]])
    assert sorted(hull_order(points)) == [2, 3, 4, 5]


def test_transform_lengths_are_long_enough_and_not_much_longer() -> None:
    for least in range(1, 2000):
        assert least <= fft_length(least) <= max(8, 1.34 * least)


def test_better_means_smaller_or_larger_by_the_problem() -> None:
    assert PROBLEMS[OVERLAP].direction is Direction.MINIMISE
    assert PROBLEMS[OVERLAP].gain(0.3, over=0.4) == pytest.approx(0.1)
    assert PROBLEMS[SECOND].gain(0.3, over=0.4) == pytest.approx(-0.1)
    best = PROBLEMS[OVERLAP].best_published
    assert best is not None and best.who == "MILO paper"


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_has_a_best_known_value(name: str) -> None:
    best = PROBLEMS[name].best_published
    assert best is not None
    assert all(PROBLEMS[name].gain(best.value, one.value) >= 0 for one in PROBLEMS[name].published)


def test_a_number_that_counts_for_none_is_named_by_its_place() -> None:
    def said(name: str, construction: object) -> str:
        with pytest.raises(Rejected) as caught:
            value(name, construction)
        return str(caught.value)

    nan, inf = float("nan"), float("inf")
    assert (
        said(FIRST, [1.0, nan]) == "the number at place 2 is nan; only finite numbers are allowed"
    )
    assert "place 3 is -inf" in said(
        "min-distance-ratio-2d", [[0, 0], [1, 0], [0, -inf]] + [[2, 2]] * 13
    )
    assert "place 1 is too large" in said(FIRST, [10**400])
    with pytest.raises(Rejected, match="it holds NaN; only finite numbers"):
        parse('{"values": [NaN]}')


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_numbers_beyond_the_range_of_products_are_told_what_to_do(size: float) -> None:
    with pytest.raises(Rejected) as caught:
        value(FIRST, [size, size / 2])
    assert f"numbers of up to {size:g} leave the range" in str(caught.value)
    assert "bring the largest near 1" in str(caught.value)


def test_an_exact_value_too_large_for_a_float_is_refused() -> None:
    points = [[float(i), float(i * i)] for i in range(14)]
    with pytest.raises(Rejected, match="leave the range"):
        value("min-distance-ratio-2d", [*points, [0.0, 1e-11], [1e300, 0.0]])


def test_a_problem_refuses_the_wrong_shape() -> None:
    def refused(problem: Problem, candidate: object) -> str:
        with pytest.raises(Rejected) as caught:
            verify(problem, candidate)
        return str(caught.value)

    assert "'values'" in refused(PROBLEMS[FIRST], {"value": [1.0]})
    assert "JSON object" in refused(PROBLEMS[FIRST], [1.0])
    assert "not empty" in refused(PROBLEMS[FIRST], {"values": []})
    assert "26 points" in refused(PROBLEMS["circle-packing"], {"circles": [[0.5, 0.5, 0.1]]})
    assert "3 numbers" in refused(PROBLEMS["circle-packing"], {"circles": [[0.5, 0.5]] * 26})
    assert "70" in refused(PROBLEMS["flat-polynomials"], {"coefficients": [1, -1]})
    assert "found str" in refused(PROBLEMS[FIRST], {"values": ["1.0"]})
