"""Pareto hypervolume of (accuracy, tokens, latency) in a fixed frame (SPEC §4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milo.core.fitness import Fitness

MIN_COST = 1e-6
Points = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """The fixed scale of one search set: seed accuracy and the cost scales.

    `seed_accuracy` is a₀ with its floor applied; `token_scale` and `latency_scale` are the c₀ of
    each cost. A changed frame recomputes every hypervolume and starts a new epoch.
    """

    seed_accuracy: float
    token_scale: float
    latency_scale: float

    @classmethod
    def fixed_by(
        cls, seed: Fitness, all_seeds: Sequence[Fitness], *, k: int, n_tasks: int
    ) -> Frame:
        """a₀ from the island's seed, at least 1/(k·|ℬ|); c₀ from the costliest seed."""
        return cls(
            seed_accuracy=max(seed.accuracy, 1.0 / (k * n_tasks)),
            token_scale=max(MIN_COST, *(s.tokens for s in all_seeds)),
            latency_scale=max(MIN_COST, *(s.latency_s for s in all_seeds)),
        )

    @property
    def reference(self) -> tuple[float, float, float]:
        """The point that a harness must beat strictly on every axis to count."""
        return (1.0 - 0.8 * self.seed_accuracy, 1.0, 1.0)

    def points(self, fitness: Sequence[Fitness]) -> Points:
        """Minimised objectives, shape (n, 3): (1 − accuracy, c/(c + c₀) of tokens, of latency)."""
        raw = np.asarray(fitness, dtype=float).reshape(-1, 3)
        scales = np.array([self.token_scale, self.latency_scale])
        costs = raw[:, 1:] / (raw[:, 1:] + scales)
        return np.column_stack([1.0 - raw[:, 0], costs])


def hypervolume(points: Points, reference: Sequence[float]) -> float:
    """Volume dominated by `points` (n, 3), all minimised, up to `reference` (pymoo's exact HV).

    A point not strictly better than the reference on every axis contributes zero; a non-finite
    point raises `ValueError`.
    """
    checked = np.asarray(points, dtype=float).reshape(-1, len(reference))
    if not np.isfinite(checked).all():
        raise ValueError("hypervolume: points must be finite")
    inside = checked[(checked < np.asarray(reference)).all(axis=1)]
    if not len(inside):
        return 0.0
    # Imported here: it costs 0.2 s, which whoever only reads a run need not wait for.
    from pymoo.indicators.hv import Hypervolume

    return float(Hypervolume(ref_point=np.asarray(reference, dtype=float), nds=False)(inside))


def hypervolume_gain(front: Points, child: Points, reference: Sequence[float]) -> float:
    """ΔHV of adding one child (3,) to a front (n, 3): the volume that the child alone dominates.

    Computed as box(child) − HV(front clipped to the child's box), so the cost falls with the
    front's overlap and rounding never makes a dominated child gain.
    """
    ref = np.asarray(reference, dtype=float)
    point = np.asarray(child, dtype=float).reshape(-1)
    if not (np.isfinite(point).all() and np.isfinite(front).all()):
        raise ValueError("hypervolume: points must be finite")
    if not (point < ref).all():
        return 0.0
    rows = np.asarray(front, dtype=float).reshape(-1, len(ref))
    if (rows <= point).all(axis=1).any():
        return 0.0
    clipped = np.maximum(rows, point)
    return max(0.0, float(np.prod(ref - point)) - hypervolume(clipped, reference))


def nondominated(fitness: Sequence[Fitness]) -> tuple[int, ...]:
    """Indices of the Pareto front; of equal members the first stays."""
    keep = []
    for i, mine in enumerate(fitness):
        beaten = any(
            other.dominates(mine) or (other == mine and j < i) for j, other in enumerate(fitness)
        )
        if not beaten:
            keep.append(i)
    return tuple(keep)
