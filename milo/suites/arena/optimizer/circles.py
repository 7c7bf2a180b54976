"""Landscapes of circle packings: in the unit square, and in a rectangle of half-perimeter two.

Distances are convex in the centres, so a linear model of them never promises too much: each linear
program gives a packing that is allowed, whatever the radius of its step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milo.suites.arena.optimizer.landscape import Step
from milo.suites.arena.optimizer.linear import Program, Rows, solved, sparse_rows
from milo.suites.arena.problems.points import pairs
from milo.suites.arena.problems.problem import Array

SAFE = 1e-14
NEAR = 0.08
"""Circles farther apart than this and four steps beyond touching are left out of a linear program;
`settled` cuts what they may overlap then."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Packing:
    """Maximise Σ r; x holds rows (x, y, r). `free` lets the box's width vary (height 2 − width)."""

    free: bool = False

    def value(self, x: Array) -> float:
        """Minus the sum of radii."""
        return -float(x[:, 2].sum())

    def repair(self, x: Array) -> Array:
        """The largest radii that these centres allow."""
        step = self.step(x, 0.0)
        return x if step is None else step.x

    def random(self, rng: np.random.Generator, like: Array) -> Array:
        """Uniform centres, pushed apart by their first linear program."""
        n = len(like)
        start = np.column_stack((rng.random((n, 2)), np.zeros(n)))
        step = self.step(start, 0.1)
        return start if step is None else step.x

    def kicked(self, x: Array, rng: np.random.Generator, size: float) -> Array:
        """All centres a little, or a few circles anywhere."""
        moved = x.copy()
        if rng.random() < 0.5:
            moved[:, :2] += rng.normal(size=(len(x), 2)) * size * 0.3
        else:
            chosen = rng.choice(len(x), size=int(rng.integers(1, 4)), replace=False)
            moved[chosen, :2] = rng.random((len(chosen), 2))
        moved[:, :2] = np.clip(moved[:, :2], 1e-6, 1 - 1e-6)
        return self.repair(moved)

    def step(self, x: Array, radius: float) -> Step | None:
        """The best packing of the linear model; its value is what it promises."""
        z = solved(self._program(x, radius))
        if z is None:
            return None
        n = len(x)
        circles = np.column_stack((z[:n], z[n : 2 * n], np.maximum(z[2 * n : 3 * n], 0.0)))
        width = float(z[3 * n]) if self.free else 1.0
        circles = settled(circles, width, 2.0 - width if self.free else 1.0)
        return Step(circles, self.value(circles))

    def _program(self, x: Array, radius: float) -> Program:
        n, width = len(x), 3 * len(x) + int(self.free)
        rows, bound = self._apart(x, width, radius)
        walls, limits = self._walls(n, width)
        low = np.concatenate((x[:, 0] - radius, x[:, 1] - radius, np.zeros(n)))
        high = np.concatenate((x[:, 0] + radius, x[:, 1] + radius, np.full(n, 0.5)))
        if self.free:
            low, high = np.append(low, 0.2), np.append(high, 1.8)
        cost = np.zeros(width)
        cost[2 * n : 3 * n] = -1.0
        return Program(
            cost=cost,
            rows=sparse_rows([rows, *walls], width),
            bound=np.concatenate((bound, limits)),
            low=low,
            high=high,
        )

    def _apart(self, x: Array, width: int, radius: float) -> tuple[Rows, Array]:
        """r_i + r_j ≤ d + u·(moves) for pairs that could touch."""
        n = len(x)
        i, j = pairs(n)
        gap = x[i, :2] - x[j, :2]
        distance = np.sqrt((gap**2).sum(axis=1))
        near = distance < x[i, 2] + x[j, 2] + NEAR + 4 * radius
        i, j, gap = i[near], j[near], gap[near]
        unit = gap / np.maximum(distance[near], 1e-12)[:, None]
        columns = np.column_stack((2 * n + i, 2 * n + j, i, n + i, j, n + j))
        ones = np.ones(len(i))
        values = np.column_stack((ones, ones, -unit, unit))
        return (columns, values), np.zeros(len(i)) + (distance[near] - (unit * gap).sum(axis=1))

    def _walls(self, n: int, width: int) -> tuple[list[Rows], Array]:
        """r ≤ x, r ≤ y, x + r ≤ width, y + r ≤ height."""
        k = np.arange(n)
        ones = np.ones(n)
        walls: list[Rows] = []
        for axis in (0, 1):
            place, size = axis * n + k, 2 * n + k
            walls.append((np.column_stack((size, place)), np.column_stack((ones, -ones))))
            far, slopes = [size, place], [ones, ones]
            if self.free:
                far.append(np.full(n, width - 1))
                slopes.append(-ones if axis == 0 else ones)
            walls.append((np.column_stack(far), np.column_stack(slopes)))
        zero, one = np.zeros(n), ones
        far_x, far_y = (zero, 2 * one) if self.free else (one, one)
        return walls, np.concatenate((zero, far_x, zero, far_y))


def settled(circles: Array, width: float, height: float) -> Array:
    """The circles with radii cut by the solver's rounding, so that no rule is broken."""
    out = circles.copy()
    x, y = out[:, 0], out[:, 1]
    walls = np.minimum(np.minimum(x, width - x), np.minimum(y, height - y))
    r = np.maximum(np.minimum(out[:, 2], walls) - SAFE, 0.0)
    i, j = pairs(len(out))
    distance = np.sqrt(((out[i, :2] - out[j, :2]) ** 2).sum(axis=1))
    for _ in range(3):
        over = np.maximum(r[i] + r[j] - distance, 0.0)
        cut = np.zeros(len(r))
        np.maximum.at(cut, i, over / 2)
        np.maximum.at(cut, j, over / 2)
        r = np.maximum(r - cut, 0.0)
    out[:, 2] = r
    return out
