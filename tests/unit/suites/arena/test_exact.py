"""Proofs of records: exact values that agree with the verifiers; refusals where there is none."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from milo.suites.arena.exact import (
    PROOFS,
    SHRINK,
    Enclosure,
    exact_convolution,
    integers,
    prove,
)
from milo.suites.arena.problems.catalogue import candidate_of, problems
from milo.suites.arena.problems.problem import Published, Rejected, verify
from milo.suites.arena.tasks import PUBLISHED, published, start_of

PROBLEMS = problems()
PACKINGS = ("circle-packing", "circle-packing-32", "circles-rectangle")


def test_every_problem_has_a_proof() -> None:
    assert set(PROOFS) == set(PROBLEMS)


def test_a_convolution_of_integers_of_either_sign_is_exact() -> None:
    rng = np.random.default_rng(0)
    for n, m, digits in ((1, 1, 1), (7, 4, 30), (60, 61, 200)):
        a = [int(rng.integers(-9, 10)) * 10**digits + int(rng.integers(0, 9)) for _ in range(n)]
        b = [-(int(rng.integers(0, 2**60)) ** 3) for _ in range(m)]
        slow = [0] * (n + m - 1)
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                slow[i + j] += x * y
        assert exact_convolution(a, b) == slow
    assert exact_convolution([0, 0], [0]) == [0, 0]


def test_floats_become_integers_over_one_denominator() -> None:
    tops, unit = integers([0.1, -3.0, 5e-324])
    assert [Fraction(top, unit) for top in tops] == [Fraction(x) for x in (0.1, -3.0, 5e-324)]


def test_analytic_values_are_rational_numbers() -> None:
    def exact(name: str, values: list[float]) -> Enclosure:
        return prove(PROBLEMS[name], {PROBLEMS[name].field: values})

    assert exact("erdos-min-overlap", [0.5] * 12).low == Fraction(1, 2)
    assert exact("first-autocorrelation-inequality", [0.1] * 7).high == 2
    assert exact("second-autocorrelation-inequality", [0.3]).low == Fraction(2, 3)
    assert exact("third-autocorrelation-inequality", [0.1] * 7).high == 2
    assert exact("difference-bases", [0, 1, 4, 6]).low == Fraction(16, 6)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_exact_value_is_that_of_the_verifiers_up_to_rounding(name: str) -> None:
    problem = PROBLEMS[name]
    held = PUBLISHED.get(name)
    construction = published(held[-1]) if held else start_of(problem, 1).construction
    candidate = candidate_of(problem, construction)
    found, value = prove(problem, candidate), verify(problem, candidate).value
    assert found.low <= found.high
    assert float(found.high - found.low) <= (3e-9 if name == "flat-polynomials" else 1e-30)
    near = 1e-9 if name in PACKINGS or name == "flat-polynomials" else 1e-11
    assert float(found.low) == pytest.approx(value, rel=near)


def test_a_sum_that_is_almost_half_is_made_exact_within_the_range() -> None:
    problem = PROBLEMS["erdos-min-overlap"]
    for h in ([1.0, 0.1, 0.4], [1.0, 0.1, 0.4 + 2**-50], [1.0, 0.1, 0.4 - 2**-50, 0.5]):
        try:
            exact = prove(problem, {"values": h})
        except Rejected:
            continue  # the arena's own rescaling leaves the range
        assert float(exact.low) == pytest.approx(verify(problem, {"values": h}).value, rel=1e-12)


def test_circles_are_shrunk_out_of_a_touch_and_refused_out_of_an_overlap() -> None:
    problem = PROBLEMS["circle-packing"]
    circles = [[(i % 6 + 0.5) / 6, (i // 6 + 0.5) / 6, 1 / 12] for i in range(26)]
    exact = prove(problem, {"circles": circles})
    assert exact.low == exact.high
    assert 26 / 12 * float(SHRINK[-1]) <= float(exact.low) <= 26 / 12
    circles[7][2] += 0.9e-9
    verify(problem, {"circles": circles})
    with pytest.raises(Rejected, match="overlap"):
        prove(problem, {"circles": circles})


def test_points_outside_the_triangle_by_less_than_the_arena_minds_prove_nothing() -> None:
    problem = PROBLEMS["heilbronn-triangles"]
    points = start_of(problem, 1).construction
    points[0] = (0.5, -0.5e-9)
    verify(problem, candidate_of(problem, points))
    with pytest.raises(Rejected, match="leave"):
        prove(problem, candidate_of(problem, points))


def test_only_a_whole_enclosure_beyond_the_printed_digits_beats_a_published_value() -> None:
    """Whether an author rounded or cut the last digit off isn't known."""
    least, most = PROBLEMS["erdos-min-overlap"], PROBLEMS["circle-packing"]

    def around(low: str, high: str) -> Enclosure:
        return Enclosure(Fraction(low), Fraction(high))

    printed = Published(who="somebody", printed="0.38")
    assert around("0.3", "0.3699").beats(least, printed)
    assert not around("0.3", "0.3701").beats(least, printed)
    assert not around("0.3", "0.39").beats(least, printed)
    assert around("0.3901", "0.9").beats(most, printed)
    assert not around("0.3899", "0.9").beats(most, printed)


def test_printed_zeros_at_the_end_tell_the_precision() -> None:
    longer = Published(who="somebody", printed="0.3800")
    assert longer.value == 0.38
    near = Enclosure(Fraction("0.3798"), Fraction("0.3798"))
    assert near.beats(PROBLEMS["erdos-min-overlap"], longer)
    shorter = Published(who="somebody", printed="0.38")
    assert not near.beats(PROBLEMS["erdos-min-overlap"], shorter)
    table = PROBLEMS["min-distance-ratio-2d"].published
    assert ("12.8892661120", Decimal("1e-10")) in [(one.printed, one.unit) for one in table]


def test_what_the_verifiers_refuse_has_no_proof() -> None:
    with pytest.raises(Rejected, match="at least 0"):
        prove(PROBLEMS["first-autocorrelation-inequality"], {"values": [1.0, -1.0]})
