"""Which harnesses stand for an evolution: k-medoids with the final revision held fixed.

After Evo-Bench, appendix B.2. Representation error and diversity are Euclidean; a few dozen
revisions leave few enough choices to try them all, so the result is exact and deterministic.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from milo.core.errors import UserError

Array = NDArray[np.float64]
MAX_CHOICES = 500_000
SEEN_IN = 2
"""A capability seen in at least this many revisions is to be kept."""


def choose_anchors(
    features: Array,
    n: int,
    *,
    final: int = -1,
    capabilities: Sequence[frozenset[str]] = (),
) -> tuple[int, ...]:
    """Indices of `n` revisions of `features` (revisions, dimensions), in order, `final` among them.

    First they keep as many as can be of the capabilities seen in two or more revisions; among
    those choices the summed distance of every revision to its nearest anchor is least; among
    those the summed distance between anchors is largest; then the earliest. Raises `UserError`.
    """
    matrix = np.asarray(features, dtype=float)
    size = len(matrix)
    fixed = range(size)[final] if -size <= final < size else -1
    if fixed < 0 or not 1 <= n <= size:
        raise UserError("anchors", f"1 to {size} of {size} revisions, one of them final", f"{n}")
    if math.comb(size - 1, n - 1) > MAX_CHOICES:
        raise UserError("anchors", f"at most {MAX_CHOICES:,} choices", f"{n} of {size} revisions")
    distance = np.linalg.norm(matrix[:, None, :] - matrix[None, :, :], axis=2)
    wanted = _wanted(capabilities)
    others = [i for i in range(size) if i != fixed]
    choices = (tuple(sorted((fixed, *more))) for more in itertools.combinations(others, n - 1))
    return min(choices, key=lambda choice: _rank(choice, distance, capabilities, wanted))


def representation_error(distance: Array, anchors: Sequence[int]) -> float:
    """Summed distance of every revision to its nearest anchor; `distance` is (n, n)."""
    return float(distance[:, list(anchors)].min(axis=1).sum())


def _wanted(capabilities: Sequence[frozenset[str]]) -> frozenset[str]:
    seen = Counter(name for held in capabilities for name in held)
    return frozenset(name for name, times in seen.items() if times >= SEEN_IN)


def _rank(
    choice: tuple[int, ...],
    distance: Array,
    capabilities: Sequence[frozenset[str]],
    wanted: frozenset[str],
) -> tuple[int, float, float, tuple[int, ...]]:
    held = frozenset().union(*(capabilities[i] for i in choice)) if capabilities else frozenset()
    apart = float(distance[np.ix_(choice, choice)].sum()) / 2
    error = representation_error(distance, choice)
    return (len(wanted - held), round(error, 9), -round(apart, 9), choice)
