"""Which tasks make a benchmark: headroom and horizon, strata of difficulty, aligned splits.

After Evo-Bench, §4.2 and appendix B.1. Where it is silent: quotas are rounded by largest
remainders, and what a band lacks goes to the others in proportion to their weights.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from milo.core.errors import UserError

PAPER_SEED = 20260716


class Band(StrEnum):
    """Score bands of headroom–horizon selection, the hardest first."""

    FRONTIER = "frontier"
    HARD = "hard"
    HARDISH = "hardish"
    MID = "mid"
    SOLVABLE = "solvable"
    EASY = "easy"


UPPER: Mapping[Band, float] = {
    Band.FRONTIER: 0.0,
    Band.HARD: 0.10,
    Band.HARDISH: 0.25,
    Band.MID: 0.50,
    Band.SOLVABLE: 0.75,
    Band.EASY: 1.0,
}
"""The highest mean score of each band."""

QUOTAS: Mapping[Band, float] = {
    Band.FRONTIER: 0.58,
    Band.HARD: 0.24,
    Band.HARDISH: 0.11,
    Band.MID: 0.045,
    Band.SOLVABLE: 0.02,
    Band.EASY: 0.005,
}
"""Evo-Bench's quota weights."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollouts:
    """What rollouts said of a task: mean score in [0, 1] and mean number of turns."""

    score: float
    turns: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Responsiveness:
    """How a task responds to harnesses: Sens(x) in [−1, 1] and Perf(x) in [0, 1]."""

    sensitivity: float
    performance: float


def band_of(score: float) -> Band:
    """The band of a mean score in [0, 1]."""
    if not 0.0 <= score <= 1.0:
        raise UserError("task score", "a number in [0, 1]", f"{score:g}")
    return next(band for band, upper in UPPER.items() if score <= upper)


def by_headroom(
    tasks: Mapping[str, Rollouts],
    n: int,
    *,
    quotas: Mapping[Band, float] = QUOTAS,
    seed: int = PAPER_SEED,
) -> tuple[str, ...]:
    """`n` tasks that favour headroom and long horizons, sorted by id.

    Each band gives its quota of the tasks with the most turns (ties by a seeded shuffle). Raises
    `UserError` for fewer than `n` tasks.
    """
    bands: dict[Band, list[str]] = {band: [] for band in Band}
    for task, seen in tasks.items():
        bands[band_of(seen.score)].append(task)
    ranked = {b: _ranked(ids, lambda t: -tasks[t].turns, seed) for b, ids in bands.items()}
    share = apportion(n, [quotas[b] for b in Band], [len(ranked[b]) for b in Band])
    return tuple(sorted(t for b, m in zip(Band, share, strict=True) for t in ranked[b][:m]))


def stratum_of(performance: float, strata: int) -> int:
    """The stratum of difficulty 1 − Perf, 0 (easiest) to `strata` − 1, of equal width."""
    return min(strata - 1, math.floor((1.0 - performance) * strata + 1e-12))


def by_sensitivity(
    tasks: Mapping[str, Responsiveness],
    n: int,
    *,
    strata: int = 5,
    backfill: bool = False,
    seed: int = PAPER_SEED,
) -> dict[str, int]:
    """`n` tasks with their stratum: the most sensitive of each stratum of difficulty.

    Tasks with Sens ≤ 0 are left out. Strata give in proportion to the tasks they hold; with
    `backfill` a sparse stratum fills its quota from its least insensitive tasks, as the paper did
    for eight tasks. Raises `UserError` for too few tasks.
    """
    members: dict[int, list[str]] = {}
    kept: dict[int, list[str]] = {}
    for task, seen in tasks.items():
        where = stratum_of(seen.performance, strata)
        members.setdefault(where, []).append(task)
        if backfill or seen.sensitivity > 0:
            kept.setdefault(where, []).append(task)
    order = sorted(kept)
    share = apportion(n, [len(members[s]) for s in order], [len(kept[s]) for s in order])
    chosen: dict[str, int] = {}
    for where, quota in zip(order, share, strict=True):
        ranked = _ranked(kept[where], lambda t: -tasks[t].sensitivity, seed)
        chosen |= dict.fromkeys(ranked[:quota], where)
    return dict(sorted(chosen.items()))


def stratified_split(
    strata: Mapping[str, int], sizes: Sequence[int], seed: int
) -> tuple[tuple[str, ...], ...]:
    """Disjoint parts of these sizes that hold every stratum in proportion, up to rounding.

    Depends on the ids, strata, sizes and seed only. Raises `UserError` for too few tasks.
    """
    if sum(sizes) > len(strata):
        raise UserError("split", f"at least {sum(sizes)} tasks", str(len(strata)))
    left: dict[int, list[str]] = {}
    for task in sorted(strata):
        left.setdefault(strata[task], []).append(task)
    for where, ids in left.items():
        random.Random(f"{seed}/{where}").shuffle(ids)
    order = sorted(left)
    whole = [len(left[s]) for s in order]
    parts = []
    for size in sizes:
        share = apportion(size, whole, [len(left[s]) for s in order])
        part = [left[s].pop() for s, m in zip(order, share, strict=True) for _ in range(m)]
        parts.append(tuple(sorted(part)))
    return tuple(parts)


def apportion(total: int, weights: Sequence[float], capacity: Sequence[int]) -> list[int]:
    """`total` places by largest remainders, none above its capacity.

    What a full one can't take goes to the others in proportion to their weights (evenly where
    all of those weigh nothing). Raises `UserError` where all together hold less.
    """
    if total > sum(capacity) or total < 0:
        raise UserError("tasks", f"at least {total}", str(sum(capacity)))
    given = [0] * len(weights)
    while (left := total - sum(given)) > 0:
        room = [i for i in range(len(weights)) if given[i] < capacity[i]]
        for i, more in zip(room, _hamilton(left, [weights[i] for i in room]), strict=True):
            given[i] += min(more, capacity[i] - given[i])
    return given


def _hamilton(total: int, weights: Sequence[float]) -> list[int]:
    """Whole numbers that sum to `total`, in proportion, by largest remainders."""
    whole = math.fsum(weights)
    shares = [total * w / whole if whole > 0 else total / len(weights) for w in weights]
    floors = [math.floor(share) for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda i: (floors[i] - shares[i], i))
    for i in by_remainder[: total - sum(floors)]:
        floors[i] += 1
    return floors


def _ranked(ids: Sequence[str], key: Callable[[str], float], seed: int) -> list[str]:
    """Sorted by key; ties in an order that depends on ids and seed only."""
    shuffled = sorted(ids)
    random.Random(seed).shuffle(shuffled)
    return sorted(shuffled, key=key)
