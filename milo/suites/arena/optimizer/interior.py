"""Interior-point descents: the largest of many curved pieces made small at a fixed sum.

A primal-dual barrier method (Nocedal and Wright 2006, chapter 19) on: minimise t subject to
t ≥ g_k(x), lower ≤ x ≤ upper, Σx as it is. Unlike linear programs it knows how the pieces bend, so
its steps stay long where the optimum is no vertex; and a barrier that is let down slowly passes by
many poor optima. t is always the best for its x, so that every point is a strictly interior one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from milo.suites.arena.problems.problem import Array

LOWERED = 0.2
"""Factor of the barrier from one level to the next."""
INWARD = 0.01
"""Share of the mean that is mixed in at first, to come off the bounds."""
TO_THE_BOUNDARY = 0.995
MOST_STEPS = 30
"""Newton steps on one level."""
NEAR = 1e-10
"""Pieces whose weight is below this share of the largest are left out of the Hessian."""
SPREAD = 1e3
"""Multipliers stay within this factor of what the barrier alone says."""


@runtime_checkable
class Curved(Protocol):
    """A landscape whose value is the largest of quadratic pieces at a fixed mean."""

    lower: float | None
    upper: float | None

    def pieces(self, x: Array) -> Array:
        """All pieces at x."""
        ...

    def slopes(self, x: Array, rows: np.ndarray) -> Array:
        """Derivatives of the chosen pieces; shape (rows, n)."""
        ...

    def pulled(self, x: Array, weights: Array) -> Array:
        """Derivative of the weighted sum of all pieces."""
        ...

    def bend(self, weights: Array) -> Array:
        """Second derivatives of the weighted sum of all pieces; shape (n, n)."""
        ...


class Point(NamedTuple):
    """x with the best t for it, the slacks t − g_k(x), and the barrier function's value."""

    x: Array
    slack: Array
    merit: float


@dataclass(kw_only=True, slots=True)
class Duals:
    """Multipliers of the pieces and of the two bounds, and the shift that the last step needed."""

    pieces: Array
    low: Array
    high: Array
    shift: float = 0.0


class Step(NamedTuple):
    """A direction, how much of the merit it promises (negative), and the multipliers' changes."""

    x: Array
    promise: float
    pieces: Array
    low: Array
    high: Array


def descend_inside(
    landscape: Curved, x: Array, *, start: float, end: float, going: Callable[[float], bool]
) -> Array:
    """The point that the barrier leads to from x, when it has come down from `start` to `end`.

    Both say how far above its optimum the barrier holds the value. `going` is asked before every
    step whether to go on, with the value that there is to hope for (−∞ before the first).
    """
    x = (1 - INWARD) * x + INWARD * float(x.mean())
    count = 2 * len(x) - 1
    weight = start / count
    point = _at(landscape, x, weight)
    if point is None:
        return x
    duals = Duals(
        pieces=weight / point.slack,
        low=weight / _room_below(landscape, x),
        high=weight / _room_above(landscape, x),
    )
    hope = -np.inf
    while weight * count > end and going(hope):
        point = _level(landscape, point, duals, weight, partial(going, hope))
        hope = float(landscape.pieces(point.x).max()) - weight * count
        weight *= LOWERED
        point = _at(landscape, point.x, weight) or point
    return point.x


def _room_below(landscape: Curved, x: Array) -> Array:
    return np.full(len(x), np.inf) if landscape.lower is None else x - landscape.lower


def _room_above(landscape: Curved, x: Array) -> Array:
    return np.full(len(x), np.inf) if landscape.upper is None else landscape.upper - x


def _at(landscape: Curved, x: Array, weight: float) -> Point | None:
    """The point with its best t: Σ weight / (t − g_k) = 1 (Newton from below, where it is convex).

    None where x is outside its bounds.
    """
    below, above = _room_below(landscape, x), _room_above(landscape, x)
    if not (below.min() > 0 and above.min() > 0):
        return None
    g = landscape.pieces(x)
    distance = g.max() - g
    above_top = weight
    for _ in range(60):
        slack = distance + above_top
        inverse = weight / slack
        excess = float(inverse.sum()) - 1.0
        if abs(excess) < 1e-13:
            break
        above_top += excess / float((inverse / slack).sum())
    slack = distance + above_top
    walls = sum(float(np.log(room).sum()) for room in (below, above) if np.isfinite(room[0]))
    merit = float(g.max()) + above_top - weight * (float(np.log(slack).sum()) + walls)
    return Point(x, slack, merit)


def _level(
    landscape: Curved, point: Point, duals: Duals, weight: float, going: Callable[[], bool]
) -> Point:
    """Newton steps at one height of the barrier, until they promise little."""
    for _ in range(MOST_STEPS):
        if not going():
            break
        step = _newton(landscape, point, duals, weight)
        if step is None:
            break
        length, new = _searched(landscape, point, step, weight)
        if new is None:
            break
        _move_duals(landscape, duals, step, new, weight)
        point = new
        if -step.promise < 0.1 * weight or length < 1e-6:
            break
    return point


def _newton(landscape: Curved, point: Point, duals: Duals, weight: float) -> Step | None:
    """The direction in which the linearised optimality conditions hold, the sum kept."""
    x, slack = point.x, point.slack
    below, above = _room_below(landscape, x), _room_above(landscape, x)
    stiff = duals.pieces / slack
    rows = np.flatnonzero(stiff > NEAR * stiff.max())
    slopes = landscape.slopes(x, rows)
    force, some = weight / slack, stiff[rows]
    gradient = landscape.pulled(x, force) - weight / below + weight / above
    pulled = some @ slopes
    hessian = (slopes.T * some) @ slopes - np.outer(pulled, pulled) / stiff.sum()
    bend = landscape.bend(duals.pieces)
    hessian += bend
    hessian[np.diag_indices(len(x))] += duals.low / below + duals.high / above
    direction = _solved(hessian, -gradient, duals, float(np.abs(bend).sum(axis=1).max()))
    if direction is None:
        return None
    change = np.zeros(len(slack))
    change[rows] = slopes @ direction
    rise = float(stiff @ change) / float(stiff.sum())
    return Step(
        x=direction,
        promise=float(gradient @ direction),
        pieces=force - duals.pieces - stiff * (rise - change),
        low=weight / below - duals.low - duals.low / below * direction,
        high=weight / above - duals.high + duals.high / above * direction,
    )


def _solved(hessian: Array, wanted: Array, duals: Duals, bent: float) -> Array | None:
    """hessian⁻¹ wanted among directions of sum zero, the diagonal raised until it is one of
    descent; `bent` is the norm of the part that can make it none, so that much is enough."""
    n = len(wanted)
    size = float(np.abs(np.diag(hessian)).mean())
    shift = duals.shift / 4 if duals.shift > 1e-6 * bent else 0.0
    both = np.column_stack((wanted, np.ones(n)))
    for _ in range(12):
        try:
            raised = hessian + size / n
            raised[np.diag_indices(n)] += shift
            solution = cho_solve(cho_factor(raised, lower=True, check_finite=False), both)
        except LinAlgError:
            shift = max(8 * shift, 1e-4 * bent)
            continue
        duals.shift = shift
        found = solution[:, 0] - solution[:, 1] * (solution[:, 0].sum() / solution[:, 1].sum())
        return np.asarray(found) if np.isfinite(found).all() else None
    return None


def _searched(
    landscape: Curved, point: Point, step: Step, weight: float
) -> tuple[float, Point | None]:
    """Backtracking from the longest step that stays inside."""
    below, above = _room_below(landscape, point.x), _room_above(landscape, point.x)
    length = min(_reach(below, step.x), _reach(above, -step.x))
    while length > 1e-10:
        new = _at(landscape, point.x + length * step.x, weight)
        if new is not None and new.merit <= point.merit + 1e-4 * length * step.promise:
            return length, new
        length /= 2
    return 0.0, None


def _reach(room: Array, direction: Array) -> float:
    """The longest step, at most one, after which some of every room is left."""
    falling = direction < 0
    if not falling.any():
        return 1.0
    return min(1.0, TO_THE_BOUNDARY * float((room[falling] / -direction[falling]).min()))


def _move_duals(landscape: Curved, duals: Duals, step: Step, point: Point, weight: float) -> None:
    """Multipliers as far as they stay positive, then near what the barrier says they are."""
    rooms = (point.slack, _room_below(landscape, point.x), _room_above(landscape, point.x))
    for name, change, room in zip(("pieces", "low", "high"), step[2:], rooms, strict=True):
        now = getattr(duals, name)
        moved = now + _reach(now, change) * change
        central = weight / room
        setattr(duals, name, np.clip(moved, central / SPREAD, central * SPREAD))
