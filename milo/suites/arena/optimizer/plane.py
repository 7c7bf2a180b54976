"""Landscapes of points in the plane: distance ratio, and Heilbronn's smallest triangle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milo.suites.arena.optimizer.landscape import Step
from milo.suites.arena.optimizer.linear import Program, Rows, solved, sparse_rows
from milo.suites.arena.problems.points import (
    ROOT3,
    convex_fast,
    doubled_areas,
    hull_order,
    pairs,
    triangle_fast,
    triples,
)
from milo.suites.arena.problems.problem import Array

CORNERS = np.array([(0.0, 0.0), (1.0, 0.0), (0.5, ROOT3 / 2)])


@dataclass(frozen=True, kw_only=True, slots=True)
class DistanceRatio:
    """Minimise (largest / smallest distance)²."""

    def value(self, x: Array) -> float:
        """The ratio; infinite where points coincide."""
        squared = _squared(x)
        least = float(squared.min())
        return float(squared.max()) / least if least > 1e-20 else float("inf")

    def repair(self, x: Array) -> Array:
        """Centred, with the smallest distance one."""
        least = float(np.sqrt(_squared(x).min()))
        centred = x - x.mean(axis=0)
        return np.asarray(centred / least if least > 1e-12 else centred)

    def random(self, rng: np.random.Generator, like: Array) -> Array:
        """Uniform in a disc."""
        n = len(like)
        angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.random(n))
        return self.repair(np.column_stack((radius * np.cos(angle), radius * np.sin(angle))))

    def kicked(self, x: Array, rng: np.random.Generator, size: float) -> Array:
        """All points a little, or one anywhere."""
        return self.repair(_kicked(x, rng, size, float(np.abs(x).max())))

    def step(self, x: Array, radius: float) -> Step | None:
        """Smallest distance at least one, largest squared distance at most t; t minimised."""
        n = len(x)
        i, j = pairs(n)
        gap = x[i] - x[j]
        distance = np.sqrt((gap**2).sum(axis=1))
        unit = gap / distance[:, None]
        columns = np.column_stack((i, n + i, j, n + j))
        ones = np.ones((len(i), 1))
        near = (columns, np.hstack((-unit, unit)))
        slopes = 2 * np.hstack((gap, -gap))
        far = (np.hstack((columns, np.full((len(i), 1), 2 * n))), np.hstack((slopes, -ones)))
        reach = np.full(2 * n, radius)
        z = solved(
            Program(
                cost=np.append(np.zeros(2 * n), 1.0),
                rows=sparse_rows([near, far], 2 * n + 1),
                bound=np.concatenate((distance - 1.0, -(distance**2))),
                low=np.append(-reach, 0.0),
                high=np.append(reach, np.inf),
            )
        )
        if z is None:
            return None
        return Step(self.repair(x + np.column_stack((z[:n], z[n : 2 * n]))), float(z[2 * n]))


@dataclass(frozen=True, kw_only=True, slots=True)
class SmallestTriangle:
    """Maximise the smallest triangle, inside the equilateral triangle or over the hull's area."""

    hull: bool

    def value(self, x: Array) -> float:
        """Minus the verifier's figure."""
        return -(convex_fast(x) if self.hull else triangle_fast(x))

    def repair(self, x: Array) -> Array:
        """Hull of area one, or every point moved into the triangle."""
        if self.hull:
            corners = x[hull_order(x)]
            area = _area(corners)
            return (x - x.mean(axis=0)) / np.sqrt(area) if area > 1e-12 else x
        weights = np.linalg.solve(
            np.vstack((CORNERS.T, np.ones(3))), np.vstack((x.T, np.ones(len(x))))
        )
        weights = np.maximum(weights, 0.0)
        return np.asarray((weights / weights.sum(axis=0)).T @ CORNERS)

    def random(self, rng: np.random.Generator, like: Array) -> Array:
        """Uniform in the triangle, or in a disc."""
        n = len(like)
        if not self.hull:
            return np.asarray(rng.dirichlet((1, 1, 1), n) @ CORNERS)
        angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.random(n))
        return self.repair(np.column_stack((radius * np.cos(angle), radius * np.sin(angle))))

    def kicked(self, x: Array, rng: np.random.Generator, size: float) -> Array:
        """All points a little, or one anywhere."""
        return self.repair(_kicked(x, rng, size, 0.5))

    def step(self, x: Array, radius: float) -> Step | None:
        """Signed areas linearised, signs kept; the smallest maximised."""
        n = len(x)
        chosen = triples(n)
        areas = doubled_areas(x, chosen)
        sign = np.where(areas < 0, -1.0, 1.0)
        columns, slopes = _area_slopes(x, chosen)
        ones = np.ones((len(chosen), 1))
        smallest = (
            np.hstack((columns, np.full((len(chosen), 1), 2 * n))),
            np.hstack((-sign[:, None] * slopes, ones)),
        )
        region, bound = self._hull_rows(x) if self.hull else self._triangle_rows(x)
        reach = np.full(2 * n, radius)
        z = solved(
            Program(
                cost=np.append(np.zeros(2 * n), -1.0),
                rows=sparse_rows([smallest, region], 2 * n + 1),
                bound=np.concatenate((sign * areas, bound)),
                low=np.append(-reach, -np.inf),
                high=np.append(reach, np.inf),
            )
        )
        if z is None:
            return None
        promised = -float(z[2 * n]) / 2 / (1.0 if self.hull else ROOT3 / 4)
        return Step(self.repair(x + np.column_stack((z[:n], z[n : 2 * n]))), promised)

    def _hull_rows(self, x: Array) -> tuple[Rows, Array]:
        """The hull's area stays at most what it is (one, after a repair)."""
        n = len(x)
        order = np.array(hull_order(x))
        before, after = x[np.roll(order, 1)], x[np.roll(order, -1)]
        slope_x = (after[:, 1] - before[:, 1]) / 2
        slope_y = (before[:, 0] - after[:, 0]) / 2
        columns = np.concatenate((order, n + order))[None, :]
        return (columns, np.concatenate((slope_x, slope_y))[None, :]), np.zeros(1)

    def _triangle_rows(self, x: Array) -> tuple[Rows, Array]:
        """y ≥ 0, √3 x + y ≤ √3, y ≤ √3 x for every point."""
        n = len(x)
        k = np.arange(n)
        columns = np.tile(np.column_stack((k, n + k)), (3, 1))
        sides = np.array([(0.0, -1.0), (ROOT3, 1.0), (-ROOT3, 1.0)])
        values = np.repeat(sides, n, axis=0)
        room = np.repeat([0.0, ROOT3, 0.0], n) - (values * np.tile(x, (3, 1))).sum(axis=1)
        return (columns, values), np.maximum(room, 0.0)


def _area_slopes(x: Array, chosen: np.ndarray) -> Rows:
    """Columns (x of a, b, c, then y) and derivatives of twice the signed areas."""
    a, b, c = x[chosen[:, 0]], x[chosen[:, 1]], x[chosen[:, 2]]
    in_x = np.column_stack((b[:, 1] - c[:, 1], c[:, 1] - a[:, 1], a[:, 1] - b[:, 1]))
    in_y = np.column_stack((c[:, 0] - b[:, 0], a[:, 0] - c[:, 0], b[:, 0] - a[:, 0]))
    return np.hstack((chosen, len(x) + chosen)), np.hstack((in_x, in_y))


def _area(corners: Array) -> float:
    x, y = (corners - corners[0]).T
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)


def _squared(x: Array) -> Array:
    i, j = pairs(len(x))
    return np.asarray(((x[i] - x[j]) ** 2).sum(axis=1))


def _kicked(x: Array, rng: np.random.Generator, size: float, extent: float) -> Array:
    moved = x + rng.normal(size=x.shape) * size * 0.3 * extent
    if rng.random() < 0.5:
        moved = x.copy()
        moved[int(rng.integers(len(x)))] += rng.normal(size=2) * extent * 0.5
    return moved
