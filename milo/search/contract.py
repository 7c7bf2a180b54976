"""The preserve-and-extend contract, measured: what a child gains and what it breaks (DarwinX).

Everything is a function of per-task scores alone. A task counts as solved where most of its
attempts resolve it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from milo.core.fitness import Evaluation, TaskScore
from milo.core.lineage import Lineage, Node

SLACK = 1e-9
"""What floating point may add to a sum of rates."""


class ChildClass(StrEnum):
    """How a child's solved set compares to its parent's."""

    IMPROVER = "improver"
    NEUTRAL = "neutral"
    STEPPING_STONE = "stepping stone"
    ARCHIVED = "archived"

    @property
    def preserves(self) -> bool:
        """Whether it solves all that its parent solves: it stays eligible as a parent."""
        return self in (ChildClass.IMPROVER, ChildClass.NEUTRAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Assessment:
    """A child against a parent: g = ΣΔ_x, R = Σ(−Δ_x)₊, both in tasks, and its class."""

    gain: float
    regression: float
    kind: ChildClass

    def holds(self, delta: float) -> bool:
        """Whether the contract is kept: it extends (g > 0), and breaks at most `delta`."""
        return self.gain > SLACK and self.regression <= delta + SLACK


def is_solved(score: TaskScore) -> bool:
    """Whether most attempts on a task resolve it."""
    return 2 * score.resolved > score.n


def solved(evaluation: Evaluation, tasks: Sequence[str]) -> frozenset[str]:
    """S(v): the measured tasks that the harness solves."""
    return frozenset(t for t in tasks if t in evaluation and is_solved(evaluation[t]))


def assess(child: Evaluation, parent: Evaluation, tasks: Sequence[str]) -> Assessment:
    """The child against one parent, on those of the tasks that both have measured."""
    shared = [t for t in tasks if t in child and t in parent]
    changes = [child[t].reward - parent[t].reward for t in shared]
    return Assessment(
        gain=math.fsum(changes),
        regression=math.fsum(-change for change in changes if change < 0),
        kind=class_of(solved(child, shared), solved(parent, shared)),
    )


def class_of(child: frozenset[str], parent: frozenset[str]) -> ChildClass:
    """The class of a child from the two solved sets."""
    if child == parent:
        return ChildClass.NEUTRAL
    if child > parent:
        return ChildClass.IMPROVER
    return ChildClass.STEPPING_STONE if child < parent else ChildClass.ARCHIVED


def uncovered(
    child: Evaluation, parents: Sequence[Evaluation], tasks: Sequence[str]
) -> tuple[str, ...]:
    """Tasks that some parent solves and the child doesn't, in the order of `tasks`."""
    union = frozenset().union(*(solved(parent, tasks) for parent in parents))
    lost = union - solved(child, tasks)
    return tuple(task for task in tasks if task in lost)


def base_parent(node: Node, lineage: Lineage, tasks: Sequence[str]) -> str:
    """The parent that a child's gain is counted from: the one that does best, ties to the first."""

    def rank(parent: str) -> float:
        evaluation = lineage[parent].evaluation("search")
        return math.fsum(evaluation[t].reward for t in tasks if t in evaluation)

    return max(node.parents, key=rank)


def lineage_gain(candidate: str, lineage: Lineage, tasks: Sequence[str]) -> float:
    """G(c) = G(p) + g(c), from 0 at the seed, by the scores as they stand now."""
    total, node = 0.0, lineage[candidate]
    while node.parents:
        parent = lineage[base_parent(node, lineage, tasks)]
        total += assess(node.evaluation("search"), parent.evaluation("search"), tasks).gain
        node = parent
    return total


def eligible(members: Sequence[str], lineage: Lineage, tasks: Sequence[str]) -> tuple[str, ...]:
    """P: the members, and their islands' other children that preserve what a parent solves.

    Stepping stones and archived children are no parents; mutators read of them in the lineage.
    """
    islands = {lineage[member].island for member in members}
    others = [
        node.candidate
        for node in lineage
        if node.island in islands
        and node.candidate not in members
        and node.verdict is not None
        and node.fitness("search", tasks) is not None
        and _preserves(node, lineage, tasks)
    ]
    return (*members, *others)


def _preserves(node: Node, lineage: Lineage, tasks: Sequence[str]) -> bool:
    if not node.parents:
        return True
    mine = node.evaluation("search")
    parents = [lineage[parent].evaluation("search") for parent in node.parents]
    return not uncovered(mine, parents, tasks)
