"""Paired tests over tasks: is a difference more than the luck of these tasks?

The task is the unit: attempts on one task are averaged before anything is compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milo.core.fitness import Interval, clustered_interval

Array = NDArray[np.float64]
EXACT_UP_TO = 14
DRAWS = 10_000
SIGNIFICANT = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedTest:
    """A mean difference over `tasks` tasks, its 95 % interval, and the two-sided p-value."""

    tasks: int
    difference: Interval
    p_value: float


def paired_test(differences: Sequence[float], rng: np.random.Generator) -> PairedTest:
    """The sign-flip permutation test on per-task differences; `rng` serves where there are too
    many signs to try them all."""
    return PairedTest(
        tasks=len(differences),
        difference=clustered_interval(differences),
        p_value=sign_flip_p(differences, rng),
    )


def sign_flip_p(
    differences: Sequence[float], rng: np.random.Generator, draws: int = DRAWS
) -> float:
    """Two-sided p-value of a zero mean, under the null that every difference may be reversed.

    Exact for up to 14 tasks that differ; else from `draws` random sign patterns, counting the
    observed one, so that it is never 0.
    """
    moved = np.asarray([d for d in differences if d != 0.0], dtype=float)
    if moved.size == 0:
        return 1.0
    # A hair of slack: equal sums must count as equal whatever order they were added in.
    bar = abs(moved.sum()) * (1 - 1e-9) - 1e-12
    if moved.size <= EXACT_UP_TO:
        return float((np.abs(_all_signs(moved.size) @ moved) >= bar).mean())
    signs = rng.integers(2, size=(draws, moved.size)) * 2.0 - 1.0
    return float(((np.abs(signs @ moved) >= bar).sum() + 1) / (draws + 1))


def sign_test_p(differences: Sequence[float]) -> float:
    """Exact two-sided sign test: only who wins each task counts, not by how much."""
    wins = sum(d > 0 for d in differences)
    losses = sum(d < 0 for d in differences)
    n, few = wins + losses, min(wins, losses)
    tail = sum(math.comb(n, i) for i in range(few + 1)) / 2.0**n
    return min(1.0, 2.0 * tail)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment for several comparisons at once, in the given order."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = running
    return adjusted


def _all_signs(n: int) -> Array:
    """Every pattern of n signs, shape (2**n, n)."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return np.asarray(bits * 2.0 - 1.0, dtype=np.float64)
