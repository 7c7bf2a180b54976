"""Landscapes of step functions: minimum overlap and the autocorrelation inequalities.

Functions are kept at a fixed sum (n/2 for the overlap, n else), which makes every objective a
maximum of quadratic pieces, plus a quadratic term for the second inequality (Dinkelbach's form).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.linalg import hankel, toeplitz

from milo.suites.arena.optimizer.landscape import Step
from milo.suites.arena.optimizer.linear import minimax
from milo.suites.arena.problems.functions import convolution
from milo.suites.arena.problems.problem import Array

BELOW_ONE = 1.0 - 1e-13
"""Values stay below one by this much, so that the verifier's rescaling can't lift them over it."""
ROWS_PER_VALUE = 1.2
MASS_WEIGHT = 20.0
STEEPNESS = 4.0
SYMMETRIC = 0.3
NOWHERE = 1e9
"""The value of a function without a positive mean, which a line search must turn back from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Curves:
    """Minimises max(pieces) over functions between `lower` and `upper` with mean `mean`.

    `pieces` has length 2n − 1; `slopes` are the derivatives of some of them, `pulled` the
    derivative of a weighted sum of them.
    """

    mean: float
    lower: float | None
    upper: float | None
    pieces: Callable[[Array], Array]
    slopes: Callable[[Array, np.ndarray], Array]
    pulled: Callable[[Array, Array], Array]

    def value(self, x: Array) -> float:
        """The largest piece of the repaired function."""
        return float(self.pieces(x).max())

    def repair(self, x: Array) -> Array:
        """Clip, then bring the sum right: by shifting in a box, by scaling else."""
        low = -np.inf if self.lower is None else self.lower
        high = np.inf if self.upper is None else self.upper
        clipped = np.clip(x, low, high)
        if self.upper is not None:
            return _shifted(clipped, low, high, self.mean)
        total = clipped.mean()
        return clipped * (self.mean / total) if total > 0 else np.full(len(x), self.mean)

    def random(self, rng: np.random.Generator, like: Array) -> Array:
        """A sum of a few cosines, or noise, on the grid of `like`; now and then symmetric, which
        halves the space for as long as nothing shakes it."""
        n = len(like)
        place = np.linspace(-1.0, 1.0, n)
        shape = np.full(n, 1.0)
        for k in range(1, int(rng.integers(3, 10))):
            shape += rng.normal() / k * np.cos(np.pi * k * place + rng.uniform(0, 2 * np.pi))
        if rng.random() < 0.5:
            shape = rng.random(n) + (0.0 if self.lower is not None else rng.normal(size=n) * 0.5)
        if rng.random() < SYMMETRIC:
            shape = (shape + shape[::-1]) / 2
        return self.repair(shape * self.mean)

    def kicked(self, x: Array, rng: np.random.Generator, size: float) -> Array:
        """Noise everywhere, or in one window only."""
        noise = rng.normal(size=len(x)) * size * max(self.mean, float(np.abs(x).mean()))
        if rng.random() < 0.5:
            width = max(2, int(len(x) * rng.uniform(0.05, 0.5)))
            start = int(rng.integers(0, len(x) - width + 1))
            window = np.zeros(len(x))
            window[start : start + width] = 1.0
            noise = noise * window * 2
        return self.repair(x + noise)

    def resized(self, x: Array, n: int) -> Array:
        """The step function averaged over n new steps; exact where n is a multiple."""
        ends = np.concatenate(([0.0], np.cumsum(x))) / len(x)
        grid = np.interp(np.linspace(0, 1, n + 1), np.linspace(0, 1, len(x) + 1), ends)
        return self.repair(np.diff(grid) * n)

    def step(self, x: Array, radius: float) -> Step | None:
        """Sequential linear programming on the largest pieces."""
        g = self.pieces(x)
        rows = _telling(g, x, radius)
        low, high = self._room(x, radius)
        found = minimax(g[rows], self.slopes(x, rows), low, high)
        return None if found is None else Step(self.repair(x + found[0]), found[1])

    def _room(self, x: Array, radius: float) -> tuple[Array, Array]:
        reach = radius * max(float(np.abs(x).mean()), 1e-12)
        low, high = np.full(len(x), -reach), np.full(len(x), reach)
        if self.lower is not None:
            low = np.maximum(low, self.lower - x)
        if self.upper is not None:
            high = np.minimum(high, self.upper - x)
        return np.minimum(low, 0.0), np.maximum(high, 0.0)

    def smoothed(self, x: Array, sharpness: float) -> tuple[float, Array]:
        """Smoothed maximum: at mean one where scale is free, else with a penalty on the mean, so
        that bounds are all that is left."""
        if self.upper is None:
            return self._at_mean(x, sharpness)
        off = float(x.mean()) - self.mean
        value, weights = softmax(self.pieces(x), sharpness)
        gradient = self.pulled(x, weights) + 2 * MASS_WEIGHT * off / len(x)
        return value + MASS_WEIGHT * off * off, gradient

    def _at_mean(self, x: Array, sharpness: float) -> tuple[float, Array]:
        """Value and gradient of the function brought to its mean, as a function of x."""
        factor = float(x.mean()) / self.mean
        if factor <= 0:
            return NOWHERE, np.zeros(len(x))
        value, weights = softmax(self.pieces(x / factor), sharpness)
        gradient = self.pulled(x / factor, weights) / factor
        return value, gradient - float(gradient @ x) / (factor * self.mean * len(x))


def _telling(g: Array, x: Array, radius: float) -> np.ndarray:
    """The pieces that can be the largest after a step, at most `ROWS_PER_VALUE` a value.

    A step changes every value by at most radius · mean|x|, and so every piece by at most
    `STEEPNESS` · radius · mean|x|²: the largest falls by that, another rises by that.
    """
    count = min(len(g), int(ROWS_PER_VALUE * len(x)) + 20)
    rows = np.argpartition(-g, count - 1)[:count]
    reach = STEEPNESS * radius * float(np.abs(x).mean()) ** 2
    return np.asarray(rows[g[rows] >= g.max() - 2 * reach])


def softmax(g: Array, sharpness: float) -> tuple[float, Array]:
    """log Σ exp(β g) / β without overflow, and the weights that are its gradient."""
    top = float(g.max())
    if math.isinf(sharpness):
        weights = np.zeros(len(g))
        weights[int(g.argmax())] = 1.0
        return top, weights
    powers = np.exp(sharpness * (g - top))
    total = float(powers.sum())
    return top + math.log(total) / sharpness, powers / total


def _shifted(x: Array, low: float, high: float, mean: float) -> Array:
    """x + s clipped into the box, with s such that the mean is right (bisection)."""
    below, above = low - float(x.max()), high - float(x.min())
    for _ in range(60):
        middle = (below + above) / 2
        if np.clip(x + middle, low, high).mean() > mean:
            above = middle
        else:
            below = middle
    return np.asarray(np.clip(x + (below + above) / 2, low, high))


# --- the pieces --------------------------------------------------------------------------------


def _shifts(values: Array) -> Array:
    """All shifts of the values over their own grid, zeros coming in: row s holds values[i + s −
    (n − 1)] for every i; a view of shape (2n − 1, n)."""
    return np.asarray(sliding_window_view(np.pad(values, len(values) - 1), len(values)))


def overlap_pieces(h: Array) -> Array:
    """Σ h(x + k)(1 − h(x)) · 2/n for k = 1 − n … n − 1."""
    return convolution(h, (1.0 - h)[::-1]) * 2 / len(h)


def overlap_slopes(h: Array, rows: np.ndarray) -> Array:
    """Derivatives of the chosen pieces."""
    n = len(h)
    return np.asarray(_shifts(1.0 - h)[2 * n - 2 - rows] - _shifts(h)[rows]) * (2 / n)


def overlap_pulled(h: Array, weights: Array) -> Array:
    """Derivative of Σ weights · pieces."""
    n = len(h)
    forward = convolution(weights, 1.0 - h)[n - 1 : 2 * n - 1]
    backward = convolution(weights[::-1], h)[n - 1 : 2 * n - 1]
    return np.asarray(forward - backward) * 2 / n


def square_pieces(f: Array) -> Array:
    """(f*f) · 2/n for functions of mean one."""
    return convolution(f, f) * 2 / len(f)


def square_slopes(f: Array, rows: np.ndarray) -> Array:
    """Derivatives of the chosen pieces."""
    n = len(f)
    return np.asarray(_shifts(f[::-1])[2 * n - 2 - rows]) * (4 / n)


def square_pulled(f: Array, weights: Array) -> Array:
    """Derivative of Σ weights · pieces."""
    n = len(f)
    return np.asarray(convolution(weights, f[::-1])[n - 1 : 2 * n - 1]) * 4 / n


def overlap_bend(weights: Array) -> Array:
    """Second derivatives of Σ weights · pieces: a Toeplitz matrix."""
    n = (len(weights) + 1) // 2
    both = weights[n - 1 :] + weights[n - 1 :: -1]
    return np.asarray(toeplitz(both)) * (-2 / n)


def square_bend(weights: Array) -> Array:
    """Second derivatives of Σ weights · pieces: a Hankel matrix."""
    n = (len(weights) + 1) // 2
    return np.asarray(hankel(weights[:n], weights[n - 1 :])) * (4 / n)


@dataclass(frozen=True, kw_only=True, slots=True)
class Peaks(Curves):
    """Curves whose value is the largest piece. `bend` gives the second derivatives of a weighted
    sum of pieces, from the weights alone: the pieces are quadratic."""

    bend: Callable[[Array], Array]


@dataclass(frozen=True, kw_only=True, slots=True)
class SecondCurves(Curves):
    """The second inequality: maximise ∥f*f∥₂² over ∥f*f∥∞ at a fixed sum (value: minus that)."""

    def value(self, x: Array) -> float:
        """Minus the ratio, normalised as the verifier does."""
        square, _, top = _second_terms(x)
        return -square / (len(x) ** 2 * top)

    def step(self, x: Array, radius: float) -> Step | None:
        """Dinkelbach: minimise ratio · max − square, both linearised at x."""
        square, gradient, top = _second_terms(x)
        c = convolution(x, x)
        rows = _telling(c * (2 / len(x)), x, radius)
        ratio = square / top
        low, high = self._room(x, radius)
        slopes = square_slopes(x, rows) * len(x) / 2 * ratio
        found = minimax(c[rows] * ratio, slopes, low, high, -gradient)
        if found is None:
            return None
        promised = -(2 * square - found[1]) / (len(x) ** 2 * top)
        return Step(self.repair(x + found[0]), promised)

    def smoothed(self, x: Array, sharpness: float) -> tuple[float, Array]:
        """Minus the ratio with a smoothed maximum; free of scale, so no penalty is needed."""
        square, gradient, _ = _second_terms(x)
        c = convolution(x, x)
        n, total = len(x), float(x.sum())
        scale = total**2 / n
        smooth, weights = softmax(c / scale, sharpness)
        top, held = smooth * scale, float(weights @ c) / scale
        down = (
            2 * convolution(weights, x[::-1])[n - 1 : 2 * n - 1] + (smooth - held) * 2 * total / n
        )
        value = square / (total**2 * top)
        slope = gradient / (total**2 * top) - value * (2 / total + down / top)
        return -value, -np.asarray(slope)


def _second_terms(f: Array) -> tuple[float, Array, float]:
    """∥f*f∥₂² of the piecewise linear interpolation, its gradient in f, and max(f*f)."""
    c = convolution(f, f)
    n = len(f)
    padded = np.concatenate(([0.0], c, [0.0]))
    square = float((2 * c @ c + c[:-1] @ c[1:]) / 3)
    outer = (4 * c + padded[:-2] + padded[2:]) / 3
    gradient = 2 * convolution(outer, f[::-1])[n - 1 : 2 * n - 1]
    return square, np.asarray(gradient), float(c.max())


def overlap_curves() -> Peaks:
    """Erdős minimum overlap."""
    return Peaks(
        mean=0.5,
        lower=0.0,
        upper=BELOW_ONE,
        pieces=overlap_pieces,
        slopes=overlap_slopes,
        pulled=overlap_pulled,
        bend=overlap_bend,
    )


def autocorrelation_curves(*, signed: bool) -> Peaks:
    """The first (f ≥ 0) and the third (signed) inequality."""
    return Peaks(
        mean=1.0,
        lower=None if signed else 0.0,
        upper=None,
        pieces=square_pieces,
        slopes=square_slopes,
        pulled=square_pulled,
        bend=square_bend,
    )


def second_curves() -> SecondCurves:
    """The second inequality."""
    return SecondCurves(
        mean=1.0,
        lower=0.0,
        upper=None,
        pieces=square_pieces,
        slopes=square_slopes,
        pulled=square_pulled,
    )
