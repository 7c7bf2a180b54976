"""Judge-order averaging: what is left of a pairwise judgement once position can't matter.

After Evo-Bench's GDPval rule: for every criterion the judge names A, B or a tie, in both orders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Choice(StrEnum):
    """What a judge prefers on one criterion: the deliverable shown first, second, or neither."""

    FIRST = "A"
    SECOND = "B"
    TIE = "tie"


WORTH = {Choice.FIRST: 1.0, Choice.TIE: 0.5, Choice.SECOND: 0.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class Preference:
    """Share of the weight that goes to the policy, in [0, 1]; None where nothing could be judged.

    `judged` of `criteria` criteria were judged in both orders and enter the score.
    """

    score: float | None
    judged: int
    criteria: int


def both_orders(
    policy_first: Sequence[Choice | None],
    policy_second: Sequence[Choice | None],
    weights: Sequence[float] | None = None,
) -> Preference:
    """The mean of both orders over criteria, weighted.

    A None is a judgement that failed: its criterion is missing in both orders, never a zero.
    """
    weighing = [1.0] * len(policy_first) if weights is None else weights
    rows = list(zip(policy_first, policy_second, weighing, strict=True))
    scored = [
        (weight, (WORTH[first] + 1.0 - WORTH[second]) / 2)
        for first, second, weight in rows
        if first is not None and second is not None and weight > 0
    ]
    if not scored:
        return Preference(score=None, judged=0, criteria=len(rows))
    total = math.fsum(weight for weight, _ in scored)
    return Preference(
        score=math.fsum(weight * worth for weight, worth in scored) / total,
        judged=len(scored),
        criteria=len(rows),
    )
