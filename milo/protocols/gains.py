"""HarnessOpt-Bench's figures: normalised gain, resolution band, LSS-λ and tiers (SPEC §7)."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence

from milo.core.errors import UserError

GainTable = Mapping[str, Mapping[str, Sequence[float]]]
"""Normalised gains of every replicate run, by optimizer and task."""


def normalised_gain(candidate: float, seed: float) -> float:
    """g = (E(H⁺) − E(H₀)) / (1 − E(H₀)), the share of the headroom that was captured (eq. 3).

    Scores are in [0, 1]; negative where the candidate is worse than the seed. Raises `UserError`
    for a seed without headroom.
    """
    for name, score in (("candidate", candidate), ("seed", seed)):
        if not 0.0 <= score <= 1.0:
            raise UserError(f"score of the {name}", "a number in [0, 1]", f"{score:g}")
    if seed >= 1.0:
        raise UserError("score of the seed", "below 1, so that there is headroom", f"{seed:g}")
    return (candidate - seed) / (1.0 - seed)


def resolution_band(
    twice: Sequence[tuple[float, float]],
    seed: float,
    *,
    scored_with: int = 1,
    held_out_with: int = 3,
) -> float:
    """Half width of what can't be told apart, in units of normalised gain (§4 of the paper).

    `twice` holds two scorings of one candidate each, as means over the same cases with
    `scored_with` attempts a case. Their median discrepancy is carried to means of `held_out_with`
    attempts (noise of a mean falls with the root of its attempts) and to the gain scale of a
    seed that scores `seed`.
    """
    if not twice:
        raise UserError("resolution band", "at least one candidate scored twice", "none")
    discrepancy = statistics.median(abs(a - b) for a, b in twice)
    return discrepancy * math.sqrt(scored_with / held_out_with) / (1.0 - seed)


def is_resolved(first: float, second: float, band: float) -> bool:
    """Whether two gains differ by more than the band; a description, not a significance test."""
    return abs(first - second) > band


def lss_lambda(gains: GainTable) -> dict[str, float]:
    """λ̂ of each optimizer: its task-adjusted mean gain against the grand mean (eq. 4 and 5).

    Replicates are averaged first. Raises `UserError` unless every optimizer has every task (the
    estimator is for balanced grids).
    """
    grid = _means(gains)
    mean = {model: _mean(list(row.values())) for model, row in grid.items()}
    grand = _mean(list(mean.values()))
    return {model: value - grand for model, value in mean.items()}


def tiers(scores: Mapping[str, float], resolution: float) -> dict[str, int]:
    """Tier of each optimizer, 1 the best; a gap wider than the resolution begins a new one."""
    order = sorted(scores, key=lambda name: -scores[name])
    found = {order[0]: 1} if order else {}
    for above, below in itertools.pairwise(order):
        gap = is_resolved(scores[above], scores[below], resolution)
        found[below] = found[above] + int(gap)
    return found


def mean_contrast(groups: Sequence[Sequence[float]]) -> float:
    """Mean absolute difference between two members of the same group, over all pairs of all
    groups: by how much changing one factor moves the gain while the others are held fixed."""
    pairs = [abs(a - b) for group in groups for a, b in itertools.combinations(group, 2)]
    return _mean(pairs)


def _means(gains: GainTable) -> dict[str, dict[str, float]]:
    if not gains:
        raise UserError("gain table", "at least one optimizer", "none")
    tasks = set(next(iter(gains.values())))
    for model, row in gains.items():
        if set(row) != tasks or not tasks or not all(row.values()):
            raise UserError(
                f"gains of {model}", f"a run on each of {', '.join(sorted(tasks))}", str(dict(row))
            )
    return {
        model: {task: _mean(runs) for task, runs in row.items()} for model, row in gains.items()
    }


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
