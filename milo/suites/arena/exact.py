"""Exact values: whoever beats a published value proves it here before saying so.

Every float is a rational number, so most objectives are computed in rational arithmetic without
any rounding. Where a root or a circle function is taken, a rational enclosure holds the value.
What the arena tolerates for the sake of rounding (a sum that is almost n/2, circles that overlap
by 1e-9) proves nothing: the proof is for an admissible construction next to the given one, which
`prove` makes by a rule of its own, and refuses where there is none so near.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from milo.suites.arena.problems import discrete, points
from milo.suites.arena.problems.problem import Array, Problem, Published, Rejected, verify

SHRINK = (Fraction(1), 1 - Fraction(1, 2**40), 1 - Fraction(1, 2**32))
"""Factors that are tried in turn to bring a construction inside limits that it touches."""
FLAT_ERROR = 1e-9
"""Far above what rounding does to `flat_direct`: at most 70 products of numbers up to 70, and an
angle off by 2e-15 under a slope of at most 70·69/2."""
BITS = 128
"""Binary digits after the point of the inverse distances."""
ROOT3_SCALE = 10**40
ROOT3_LOW = Fraction(math.isqrt(3 * ROOT3_SCALE**2), ROOT3_SCALE)
ROOT3_HIGH = ROOT3_LOW + Fraction(1, ROOT3_SCALE)

Points = Sequence[tuple[Fraction, ...]]


class Enclosure(NamedTuple):
    """Two rational numbers with the true value between them (equal where it is rational)."""

    low: Fraction
    high: Fraction

    def worst(self, problem: Problem) -> Fraction:
        """The end that promises less."""
        return self.low if problem.sign > 0 else self.high

    def beats(self, problem: Problem, one: Published) -> bool:
        """Whether the whole enclosure is better than whatever was printed as this: by more than a
        unit in the last printed digit, since some round and others cut digits off."""
        gain = int(problem.sign) * (self.worst(problem) - Fraction(one.printed))
        return gain > Fraction(one.unit)


def prove(problem: Problem, candidate: object) -> Enclosure:
    """An enclosure of the candidate's objective (the arena's JSON, parsed).

    Raises `Rejected` where the verifiers refuse it, or where no admissible construction is near.
    """
    construction = verify(problem, candidate).construction
    return PROOFS[problem.name](construction)


# --- step functions ----------------------------------------------------------------------------


def integers(values: Sequence[float]) -> tuple[list[int], int]:
    """The values as integers over one denominator (a power of two)."""
    ratios = [value.as_integer_ratio() for value in values]
    denominator = max(bottom for _, bottom in ratios)
    return [top * (denominator // bottom) for top, bottom in ratios], denominator


def exact_convolution(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """Σ_i a_i b_(k−i), exactly: each sequence is packed into one integer (Kronecker 1882), these
    are multiplied, and the product is taken apart."""
    largest = max(map(abs, a)) * max(map(abs, b)) * min(len(a), len(b))
    width = (largest.bit_length() + 2 + 7) // 8
    return _unpacked(_packed(a, width) * _packed(b, width), width, len(a) + len(b) - 1)


def _packed(values: Sequence[int], width: int) -> int:
    """Σ value_i · 256^(width·i); the digits are lifted by a half so that none is negative."""
    half = 1 << (8 * width - 1)
    digits = b"".join((value + half).to_bytes(width, "little") for value in values)
    return int.from_bytes(digits, "little") - _halves(width, len(values))


def _unpacked(whole: int, width: int, count: int) -> list[int]:
    half = 1 << (8 * width - 1)
    digits = (whole + _halves(width, count)).to_bytes(width * count, "little")
    return [
        int.from_bytes(digits[at : at + width], "little") - half
        for at in range(0, width * count, width)
    ]


def _halves(width: int, count: int) -> int:
    half = (1 << (8 * width - 1)).to_bytes(width, "little")
    return int.from_bytes(half * count, "little")


def _rational(value: Fraction) -> Enclosure:
    return Enclosure(value, value)


def _overlap(h: Array) -> Enclosure:
    """Minimum overlap of h with its sum made exactly n/2: scaled towards 0 where it is too large,
    towards 1 where it is too small, so that it stays in [0, 1]."""
    tops, one = integers(h.tolist())
    n, total = len(tops), sum(tops)
    if 2 * total >= n * one:
        unit = 2 * total
        tops = [n * top for top in tops]
    else:
        unit = 2 * (n * one - total)
        tops = [unit - n * (one - top) for top in tops]
    overlaps = exact_convolution(tops, [unit - top for top in reversed(tops)])
    return _rational(Fraction(2 * max(overlaps), n * unit * unit))


def _square(f: Array) -> tuple[list[int], int]:
    """f*f and (Σf)², both over one denominator that cancels in every ratio."""
    tops, _ = integers(f.tolist())
    return exact_convolution(tops, tops), sum(tops) ** 2


def _peak(f: Array) -> Enclosure:
    """|max(f*f)| · 2n / (Σf)²: the first and the third inequality."""
    products, total = _square(f)
    return _rational(Fraction(abs(max(products)) * 2 * len(f), total))


def _second(f: Array) -> Enclosure:
    """∥f*f∥₂² / (∥f*f∥₁ ∥f*f∥∞), the square integrated piecewise linearly."""
    c, _ = _square(f)
    between = sum(a * b for a, b in itertools.pairwise(c))
    square = 2 * sum(value * value for value in c) + between
    return _rational(Fraction(square, 3 * sum(map(abs, c)) * max(map(abs, c))))


# --- points ------------------------------------------------------------------------------------


def _exact(array: Array) -> Points:
    return [tuple(map(Fraction, row)) for row in array.tolist()]


def _packing(circles: Array, *, square: bool) -> Enclosure:
    """Σ r of circles that overlap nowhere and stay inside, the radii shrunk a little if need be."""
    exact = _exact(circles)
    for factor in SHRINK:
        shrunk = [(x, y, r * factor) for x, y, r in exact]
        if _inside(shrunk, square=square) and not _overlapping(shrunk):
            return _rational(sum((r for _, _, r in shrunk), Fraction(0)))
    raise Rejected("circles overlap or leave their room, if only by what the arena tolerates")


def _inside(circles: Points, *, square: bool) -> bool:
    sides = [
        (min(c[axis] - c[2] for c in circles), max(c[axis] + c[2] for c in circles))
        for axis in (0, 1)
    ]
    if square:
        return all(low >= 0 and high <= 1 for low, high in sides)
    return sum(high - low for low, high in sides) <= 2


def _overlapping(circles: Points) -> bool:
    return any(
        (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 < (a[2] + b[2]) ** 2
        for a, b in itertools.combinations(circles, 2)
    )


def _ratio(array: Array) -> Enclosure:
    """(largest / smallest distance)²."""
    squared = [
        (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 for a, b in itertools.combinations(_exact(array), 2)
    ]
    return _rational(max(squared) / min(squared))


def _smallest_doubled(exact: Points) -> Fraction:
    return min(
        abs((b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]))
        for a, b, c in itertools.combinations(exact, 3)
    )


def _triangle(array: Array) -> Enclosure:
    """Smallest triangle over √3/4, of points inside the equilateral triangle, drawn towards its
    centre a little if need be. (√3 isn't rational: the centre's height is taken near it.)"""
    centre = (Fraction(1, 2), ROOT3_LOW / 6)
    for factor in SHRINK:
        drawn = [
            tuple(c + factor * (p - c) for p, c in zip(point, centre, strict=True))
            for point in _exact(array)
        ]
        if all(_in_triangle(x, y) for x, y in drawn):
            doubled = _smallest_doubled(drawn)
            return Enclosure(2 * doubled / ROOT3_HIGH, 2 * doubled / ROOT3_LOW)
    raise Rejected("points leave the triangle, if only by what the arena tolerates")


def _in_triangle(x: Fraction, y: Fraction) -> bool:
    return 0 <= x <= 1 and y >= 0 and y * y <= 3 * min(x, 1 - x) ** 2


def _convex(array: Array) -> Enclosure:
    """Smallest triangle over the hull's area."""
    exact = [(Fraction(x), Fraction(y)) for x, y in array.tolist()]
    return _rational(_smallest_doubled(list(exact)) / points.hull_doubled(exact))


def _energy(array: Array) -> Enclosure:
    """Σ 1/d of the vectors brought to length one exactly."""
    flat, _ = integers(array.ravel().tolist())
    vectors = [tuple(flat[at : at + 3]) for at in range(0, len(flat), 3)]
    norms = [sum(x * x for x in vector) for vector in vectors]
    low = high = 0
    for i, j in itertools.combinations(range(len(vectors)), 2):
        dot = sum(x * y for x, y in zip(vectors[i], vectors[j], strict=True))
        least, most = _inverse_distance(dot, norms[i] * norms[j])
        low, high = low + least, high + most
    return Enclosure(Fraction(low, 1 << BITS), Fraction(high, 1 << BITS))


def _inverse_distance(dot: int, norms: int) -> tuple[int, int]:
    """Bounds of 1/|u − v| in units of 2^−BITS; |u − v|² = 2 − 2 dot/√norms."""
    root = math.isqrt(norms)
    double = dot << (BITS + 1)
    cosines = (double // root, double // (root + 1))
    square_low = (1 << (BITS + 1)) - max(cosines) - 1
    square_high = (1 << (BITS + 1)) - min(cosines)
    if square_low <= 0:
        raise Rejected("two points can't be told apart")
    cube = 1 << (3 * BITS)
    return math.isqrt(cube // square_high), math.isqrt(cube // square_low + 1) + 1


# --- signs and integers ------------------------------------------------------------------------


def _flat(signs: Array) -> Enclosure:
    """The arena's maximum on its grid, within what rounding can have done."""
    value = Fraction(discrete.flat_direct(signs))
    return Enclosure(value - Fraction(FLAT_ERROR), value + Fraction(FLAT_ERROR))


def _basis(basis: Array) -> Enclosure:
    """|B|² / v; all integers."""
    whole = [int(one) for one in basis]
    return _rational(Fraction(len(whole) ** 2, discrete.covered(whole)))


PROOFS: Mapping[str, Callable[[Array], Enclosure]] = MappingProxyType(
    {
        "erdos-min-overlap": _overlap,
        "first-autocorrelation-inequality": _peak,
        "second-autocorrelation-inequality": _second,
        "third-autocorrelation-inequality": _peak,
        "circle-packing": partial(_packing, square=True),
        "circle-packing-32": partial(_packing, square=True),
        "circles-rectangle": partial(_packing, square=False),
        "min-distance-ratio-2d": _ratio,
        "heilbronn-triangles": _triangle,
        "heilbronn-convex-13": _convex,
        "heilbronn-convex": _convex,
        "thomson-problem": _energy,
        "flat-polynomials": _flat,
        "difference-bases": _basis,
    }
)
