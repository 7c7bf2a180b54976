"""Evo-Bench's figures: Overall, AnytimeVal, harness sensitivity and performance (SPEC §7)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from milo.core.errors import UserError

Array = NDArray[np.float64]

PAPER_WEIGHTS: Mapping[str, float] = {"search": 2.0, "office": 2.0, "general": 1.0}
"""Evo-Bench's domains and their weights."""


def overall(domains: Mapping[str, float], weights: Mapping[str, float] | None = None) -> float:
    """The weighted mean of domain scores, in their unit; without weights all count the same.

    Raises `UserError` where scores and weights name different domains or weigh nothing.
    """
    weighing = dict.fromkeys(domains, 1.0) if weights is None else weights
    if set(weighing) != set(domains) or not domains:
        raise UserError(
            "domain weights", f"one for each of {', '.join(sorted(domains))}", str(dict(weighing))
        )
    total = math.fsum(weighing.values())
    if total <= 0 or min(weighing.values()) < 0:
        raise UserError("domain weights", "no negative one and a positive sum", str(dict(weighing)))
    return math.fsum(weighing[name] * score for name, score in domains.items()) / total


def anytime_value(scores: Sequence[float], iterations: int) -> float:
    """Mean of the best-so-far over the whole iteration budget; a run that ends early carries its
    best forward. `scores` is the validation score of each iteration, in order.

    Raises `UserError` for no score, or more scores than the budget has iterations.
    """
    if not 1 <= len(scores) <= iterations:
        raise UserError("iterations", f"1 to {iterations} scores", str(len(scores)))
    best = list(itertools.accumulate(scores, max))
    best += [best[-1]] * (iterations - len(best))
    return math.fsum(best) / iterations


def sensitivity(scores: Array) -> Array:
    """Sens(x) of each task, shape (tasks,), from scores (harnesses, tasks).

    Pearson correlation over harnesses between the score on x and the mean score on all other
    tasks. A task (or a remainder) on which all harnesses are equal tells nothing: 0.
    """
    matrix = _matrix(scores, least_tasks=2)
    n = matrix.shape[1]
    rest = (matrix.sum(axis=1, keepdims=True) - matrix) / (n - 1)
    mine, theirs = matrix - matrix.mean(axis=0), rest - rest.mean(axis=0)
    size = np.sqrt((mine**2).sum(axis=0) * (theirs**2).sum(axis=0))
    # What floating point leaves of a constant column is no variation.
    flat = (np.ptp(matrix, axis=0) < 1e-12) | (np.ptp(rest, axis=0) < 1e-12)
    product = (mine * theirs).sum(axis=0)
    return np.where(flat, 0.0, np.clip(product / np.where(flat, 1.0, size), -1.0, 1.0))


def performance(scores: Array) -> Array:
    """Perf(x) of each task, shape (tasks,): its mean over harnesses; difficulty is 1 − Perf."""
    mean: Array = _matrix(scores, least_tasks=1).mean(axis=0)
    return mean


def _matrix(scores: Array, least_tasks: int) -> Array:
    matrix = np.asarray(scores, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] < 1 or matrix.shape[1] < least_tasks:
        raise UserError("scores", f"harnesses × at least {least_tasks} tasks", str(matrix.shape))
    if not np.isfinite(matrix).all():
        raise UserError("scores", "finite numbers", "a missing or infinite one")
    return matrix
