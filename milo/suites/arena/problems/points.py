"""Points in the plane and on the sphere: packings, distances, small triangles, charges.

`*_fast` are vectorised; `*_direct` are loops in plain Python, in exact rational arithmetic where
areas are compared. Sources: the arena's verifiers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from milo.suites.arena.problems.problem import Array, Rejected, rows, unit_scale

OVERLAP = 1e-9
"""What circles may overlap by, and a box exceed its limit."""
SAME_POINT = 1e-12
MAX_COORDINATE = 1e6
RESOLVED = 1e6
"""A radius must be this many units in the last place of its circle's coordinates."""
ROOT3 = math.sqrt(3.0)


def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Index arrays i < j of all pairs of n things."""
    i, j = np.triu_indices(n, k=1)
    return i, j


def triples(n: int) -> Array:
    """Index rows (i, j, k) of all triples of n points."""
    return np.array(list(itertools.combinations(range(n), 3)))


# --- circles -----------------------------------------------------------------------------------


def read_square_packing(value: object, count: int) -> Array:
    """Circles (x, y, r) in the unit square, strictly inside it, apart up to 1e-9."""
    circles = rows(value, count, 3)
    centre, r = circles[:, :2], circles[:, 2:]
    if r.min() < 0:
        raise Rejected("expected radii of at least 0")
    if not ((r <= centre) & (centre <= 1 - r)).all():
        raise Rejected("a circle leaves the unit square")
    _refuse_overlap(circles)
    return circles


def read_rectangle_packing(value: object, count: int) -> Array:
    """Circles whose bounding box has width + height ≤ 2 + 1e-9, apart up to 1e-9."""
    circles = rows(value, count, 3)
    centre, r = circles[:, :2], circles[:, 2]
    if r.min() <= 0:
        raise Rejected("expected radii above 0")
    if np.abs(centre).max() > MAX_COORDINATE:
        raise Rejected(f"expected coordinates of at most {MAX_COORDINATE:g}")
    if (r < RESOLVED * np.abs(np.spacing(centre)).max(axis=1)).any():
        raise Rejected("a radius is lost in the rounding of its circle's coordinates")
    if perimeter_half(circles) > 2 + OVERLAP:
        raise Rejected("width + height exceeds 2")
    _refuse_overlap(circles)
    return circles


def perimeter_half(circles: Array) -> float:
    """Width plus height of the circles' bounding box."""
    centre, r = circles[:, :2], circles[:, 2:]
    return float(((centre + r).max(axis=0) - (centre - r).min(axis=0)).sum())


def _refuse_overlap(circles: Array) -> None:
    i, j = pairs(len(circles))
    apart = np.sqrt(((circles[i, :2] - circles[j, :2]) ** 2).sum(axis=1))
    if (circles[i, 2] + circles[j, 2] > apart + OVERLAP).any():
        raise Rejected("two circles overlap")


def radii_fast(circles: Array) -> float:
    """Σ r."""
    return float(circles[:, 2].sum())


def radii_direct(circles: Array) -> float:
    """Σ r correctly rounded, after a second look at every pair."""
    for a, b in itertools.combinations(circles.tolist(), 2):
        if a[2] + b[2] > math.hypot(a[0] - b[0], a[1] - b[1]) + 1.001 * OVERLAP:
            raise Rejected("two circles overlap")
    return math.fsum(circles[:, 2].tolist())


# --- distances ---------------------------------------------------------------------------------


def read_plane(value: object, count: int) -> Array:
    """`count` distinct points of the plane."""
    points = rows(value, count, 2)
    with np.errstate(all="ignore"):
        nearest = _distances_squared(points).min()
    if not nearest >= SAME_POINT**2:
        raise Rejected(f"two points coincide (they are nearer than {SAME_POINT:g})")
    return points


def _distances_squared(points: Array) -> Array:
    i, j = pairs(len(points))
    return np.asarray(((points[i] - points[j]) ** 2).sum(axis=1))


def ratio_fast(points: Array) -> float:
    """(largest distance / smallest distance)²."""
    squared = _distances_squared(points)
    return float(squared.max() / squared.min())


def ratio_direct(points: Array) -> float:
    """The same over exact squared distances."""
    exact = [tuple(map(Fraction, point)) for point in unit_scale(points).tolist()]
    squared = [(a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 for a, b in itertools.combinations(exact, 2)]
    return float(max(squared) / min(squared))


def read_sphere(value: object, count: int) -> Array:
    """`count` vectors of the space, brought to length 1; none zero, none twice."""
    vectors = rows(value, count, 3)
    with np.errstate(all="ignore"):
        lengths = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
        unit = vectors / lengths
    if not (np.isfinite(unit).all() and lengths.min() >= SAME_POINT):
        raise Rejected("a vector can't be brought to length 1")
    if not _distances_squared(unit).min() >= SAME_POINT**2:
        raise Rejected(f"two points coincide (they are nearer than {SAME_POINT:g})")
    return np.asarray(unit)


def energy_fast(points: Array) -> float:
    """Σ over pairs of 1/d (Thomson)."""
    return float((1.0 / np.sqrt(_distances_squared(points))).sum())


def energy_direct(points: Array) -> float:
    """The same, pair by pair, correctly rounded at the end."""
    return math.fsum(1.0 / math.dist(a, b) for a, b in itertools.combinations(points.tolist(), 2))


# --- triangles (Heilbronn) ---------------------------------------------------------------------


def doubled_areas(points: Array, chosen: Array) -> Array:
    """Twice the signed area of each chosen triple."""
    a, b, c = points[chosen[:, 0]], points[chosen[:, 1]], points[chosen[:, 2]]
    return np.asarray(
        (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (c[:, 0] - a[:, 0]) * (b[:, 1] - a[:, 1])
    )


def read_triangle(value: object, count: int) -> Array:
    """Points of the equilateral triangle (0,0), (1,0), (1/2, √3/2), up to 1e-9."""
    points = rows(value, count, 2)
    x, y = points[:, 0], points[:, 1]
    outside = (y < -OVERLAP) | (ROOT3 * x + y > ROOT3 + OVERLAP) | (y > ROOT3 * x + OVERLAP)
    if outside.any():
        raise Rejected("a point lies outside the triangle")
    return points


def read_points(value: object, count: int) -> Array:
    """`count` points of the plane."""
    return rows(value, count, 2)


def triangle_fast(points: Array) -> float:
    """Smallest triangle over the area of the equilateral one."""
    return float(np.abs(doubled_areas(points, triples(len(points)))).min() / 2 / (ROOT3 / 4))


def triangle_direct(points: Array) -> float:
    """The same over exact areas."""
    return float(_smallest_doubled(_exact(points))) / 2 / (ROOT3 / 4)


def convex_fast(points: Array) -> float:
    """Smallest triangle over the area of the convex hull."""
    hull = points[hull_order(points)]
    x, y = (hull - hull[0]).T
    doubled = float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum())
    return float(np.abs(doubled_areas(points, triples(len(points)))).min() / doubled)


def convex_direct(points: Array) -> float:
    """The same in exact arithmetic; the hull's area by walking around it."""
    exact = _exact(points)
    return float(_smallest_doubled(exact) / hull_doubled(exact))


def hull_doubled(points: Sequence[Exact]) -> Fraction:
    """Twice the area of the convex hull, which must not be zero."""
    hull = _wrapped(points)
    doubled = sum((_cross(hull[0], a, b) for a, b in itertools.pairwise(hull)), Fraction(0))
    if doubled == 0:
        raise Rejected("all points lie on one line")
    return doubled


def hull_order(points: Array) -> list[int]:
    """Indices of the convex hull's corners, counter-clockwise (monotone chains)."""
    order = np.lexsort((points[:, 1], points[:, 0])).tolist()
    lower, upper = _chain(points, order), _chain(points, order[::-1])
    return lower[:-1] + upper[:-1]


def _chain(points: Array, order: Sequence[int]) -> list[int]:
    chain: list[int] = []
    for index in order:
        while len(chain) > 1 and _turn(points, chain[-2], chain[-1], index) <= 0:
            chain.pop()
        chain.append(index)
    return chain


def _turn(points: Array, a: int, b: int, c: int) -> float:
    return float(doubled_areas(points, np.array([[a, b, c]]))[0])


Exact = tuple[Fraction, Fraction]


def _exact(points: Array) -> list[Exact]:
    return [(Fraction(x), Fraction(y)) for x, y in points.tolist()]


def _cross(a: Exact, b: Exact, c: Exact) -> Fraction:
    return (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])


def _smallest_doubled(points: Sequence[Exact]) -> Fraction:
    return min(abs(_cross(a, b, c)) for a, b, c in itertools.combinations(points, 3))


def _wrapped(points: Sequence[Exact]) -> list[Exact]:
    """The hull's corners, counter-clockwise from the leftmost (gift wrapping)."""
    start = min(points)
    hull = [start]
    while True:
        following = next((p for p in points if p != hull[-1]), start)
        for point in points:
            side = _cross(hull[-1], following, point)
            if side < 0 or (side == 0 and _farther(hull[-1], point, following)):
                following = point
        if following == start or len(hull) > len(points):
            return hull
        hull.append(following)


def _farther(origin: Exact, a: Exact, b: Exact) -> bool:
    def squared(p: Exact) -> Fraction:
        return (p[0] - origin[0]) ** 2 + (p[1] - origin[1]) ** 2

    return squared(a) > squared(b)
