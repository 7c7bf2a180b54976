"""Landscapes without linear models: charges on a sphere, signs, difference bases."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from milo.suites.arena.problems.discrete import basis_fast
from milo.suites.arena.problems.points import energy_fast, pairs
from milo.suites.arena.problems.problem import Array, Rejected

GRID = 2048


@dataclass(frozen=True, kw_only=True, slots=True)
class Charges:
    """Thomson's problem: minimise Σ 1/d over unit vectors."""

    lower: float | None = None
    upper: float | None = None

    def value(self, x: Array) -> float:
        """The energy of the vectors brought to length one."""
        return energy_fast(self.repair(x))

    def repair(self, x: Array) -> Array:
        """Every vector brought to length one."""
        return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12))

    def random(self, rng: np.random.Generator, like: Array) -> Array:
        """A spiral around a random axis, which has few defects, a little shaken."""
        n = len(like)
        k = np.arange(n)
        height = 1 - (2 * k + 1) / n
        angle = k * math.pi * (3 - math.sqrt(5)) + rng.uniform(0, 6.3)
        ring = np.sqrt(1 - height**2)
        spiral = np.column_stack((ring * np.cos(angle), ring * np.sin(angle), height))
        return self.repair(spiral + rng.normal(size=(n, 3)) * 0.02)

    def kicked(self, x: Array, rng: np.random.Generator, size: float) -> Array:
        """All a little, or a few anywhere."""
        if rng.random() < 0.5:
            return self.repair(x + rng.normal(size=x.shape) * size * 0.2)
        moved = x.copy()
        chosen = rng.choice(len(x), size=int(rng.integers(1, 5)), replace=False)
        moved[chosen] = rng.normal(size=(len(chosen), 3))
        return self.repair(moved)

    def smoothed(self, x: Array, sharpness: float) -> tuple[float, Array]:
        """The energy as it is: it is smooth already."""
        lengths = np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
        unit = x / lengths
        i, j = pairs(len(x))
        gap = unit[i] - unit[j]
        inverse = 1.0 / np.sqrt((gap**2).sum(axis=1))
        force = gap * (inverse**3)[:, None]
        pull = np.zeros_like(x)
        for axis in range(3):
            pull[:, axis] -= np.bincount(i, force[:, axis], len(x))
            pull[:, axis] += np.bincount(j, force[:, axis], len(x))
        tangential = pull - (pull * unit).sum(axis=1, keepdims=True) * unit
        return float(inverse.sum()), np.asarray(tangential / lengths)


@dataclass(frozen=True, kw_only=True, slots=True)
class Signs:
    """Flat polynomials on a coarse circle; the best is judged on the verifier's."""

    def value(self, x: Array) -> float:
        """max |p| on a coarse grid over √(n + 1)."""
        return float(np.abs(np.fft.rfft(x, GRID)).max()) / math.sqrt(len(x) + 1)

    def repair(self, x: Array) -> Array:
        """Signs."""
        return np.where(x < 0, -1.0, 1.0)

    def random(self, rng: np.random.Generator, like: Array) -> Array:
        """Fair coins."""
        return rng.choice([-1.0, 1.0], len(like))

    def kicked(self, x: Array, rng: np.random.Generator, size: float) -> Array:
        """Some signs turned: one, or a share of `size`."""
        chosen = rng.choice(len(x), size=max(1, round(size * len(x) * rng.random())), replace=False)
        moved = x.copy()
        moved[chosen] *= -1
        return moved


@dataclass(frozen=True, kw_only=True, slots=True)
class Basis:
    """Difference bases: minimise |B|² / v."""

    def value(self, x: Array) -> float:
        """The verifier's figure."""
        try:
            return basis_fast(x)
        except Rejected:
            return math.inf

    def repair(self, x: Array) -> Array:
        """Distinct integers from 0 on."""
        whole = np.unique(np.round(x))
        return np.asarray(whole - whole[0])

    def random(self, rng: np.random.Generator, like: Array) -> Array:
        """A Wichmann ruler of random size (Wichmann 1963), not much longer than `like`."""
        most = max(4, len(like) // 5)
        r, s = int(rng.integers(0, most)), int(rng.integers(1, 2 * most))
        steps = [1] * r + [r + 1] + [2 * r + 1] * r + [4 * r + 3] * s
        steps += [2 * r + 2] * (r + 1) + [1] * r
        return np.concatenate(([0.0], np.cumsum(steps)))

    def kicked(self, x: Array, rng: np.random.Generator, size: float) -> Array:
        """An element moved, added or taken out."""
        moved = x.copy()
        at = int(rng.integers(1, len(x)))
        what = rng.random()
        if what < 0.6:
            moved[at] += float(rng.integers(-3, 4))
        elif what < 0.8 and len(x) > 3:
            moved = np.delete(moved, at)
        else:
            moved = np.append(moved, float(rng.integers(1, int(x.max() * (1 + size)) + 2)))
        return self.repair(moved)
