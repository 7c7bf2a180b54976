"""Parent selection: which member an island's next child is made from (SPEC §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milo.core.fitness import Fitness
from milo.core.lineage import Lineage
from milo.core.plan import SelectionKind, SelectionPlan
from milo.core.ports import ParentSelection
from milo.search.lineage_gain import GainSelection

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class SoftmaxSelection:
    """P(h) ∝ exp((α·D(h) − (1−α)·S(h)) / τ): dominance against behavioural similarity.

    D is the balance of members dominated and dominating, over n − 1; S the mean over the other
    members of 1 − mean |Δp_x| on the tasks both have measured (0 where there are none). A member
    without complete fitness on the current tasks neither dominates nor is dominated.
    """

    alpha: float = 0.5
    tau: float = 0.25

    def choose(
        self,
        members: Sequence[str],
        lineage: Lineage,
        tasks: Sequence[str],
        rng: np.random.Generator,
    ) -> str:
        """One of the members; a single member is chosen without a draw."""
        if len(members) == 1:
            return members[0]
        chances = self.probabilities(members, lineage, tasks)
        return members[int(rng.choice(len(members), p=chances))]

    def probabilities(
        self, members: Sequence[str], lineage: Lineage, tasks: Sequence[str]
    ) -> Array:
        """The chance of each member, shape (n,)."""
        fitness = [lineage[member].fitness("search", tasks) for member in members]
        score = self.alpha * dominance(fitness) - (1 - self.alpha) * similarity(
            pass_rates(members, lineage)
        )
        weight = np.exp((score - score.max()) / self.tau)
        chances: Array = weight / weight.sum()
        return chances


@dataclass(frozen=True, kw_only=True, slots=True)
class BestSelection:
    """Always the most accurate member, ties by tokens, then by age (ablations A and B)."""

    def choose(
        self,
        members: Sequence[str],
        lineage: Lineage,
        tasks: Sequence[str],
        rng: np.random.Generator,
    ) -> str:
        """The best member; one that isn't scored on every task ranks last."""

        def rank(member: str) -> tuple[float, float]:
            fitness = lineage[member].fitness("search", tasks)
            return (-fitness.accuracy, fitness.tokens) if fitness else (1.0, 0.0)

        return min(members, key=rank)


@dataclass(frozen=True, kw_only=True, slots=True)
class RootSelection:
    """Always the island's root: independent single mutations (`best_of_n`)."""

    def choose(
        self,
        members: Sequence[str],
        lineage: Lineage,
        tasks: Sequence[str],
        rng: np.random.Generator,
    ) -> str:
        """The first member."""
        return members[0]


def selection_of(plan: SelectionPlan) -> ParentSelection:
    """The selection that a plan names."""
    match plan.kind:
        case SelectionKind.SOFTMAX:
            return SoftmaxSelection(alpha=plan.alpha, tau=plan.tau)
        case SelectionKind.BEST:
            return BestSelection()
        case SelectionKind.ROOT:
            return RootSelection()
        case SelectionKind.GAIN:
            return GainSelection(beta=plan.beta)


def dominance(fitness: Sequence[Fitness | None]) -> Array:
    """D of each member, shape (n,), in [−1, 1]; unmeasured members get 0. Needs n ≥ 2."""
    n = len(fitness)
    known = np.array([f is not None for f in fitness])
    rows = np.array([f if f is not None else (0.0, 0.0, 0.0) for f in fitness])
    costs = rows * np.array([-1.0, 1.0, 1.0])
    no_worse = (costs[:, None, :] <= costs[None, :, :]).all(axis=2)
    beats = no_worse & ~no_worse.T & known[:, None] & known[None, :]
    balance: Array = (beats.sum(axis=1) - beats.sum(axis=0)) / (n - 1)
    return balance


def similarity(rates: Array) -> Array:
    """S of each member from pass rates (n, tasks) with NaN where unmeasured; shape (n,)."""
    n = len(rates)
    result = np.zeros(n)
    for i in range(n):
        gap = np.abs(rates - rates[i])
        shared = ~np.isnan(gap)
        count = shared.sum(axis=1)
        mean_gap = np.where(shared, gap, 0.0).sum(axis=1) / np.maximum(count, 1)
        alike = np.where(count > 0, 1.0 - mean_gap, 0.0)
        alike[i] = 0.0
        result[i] = alike.sum() / (n - 1)
    return result


def pass_rates(members: Sequence[str], lineage: Lineage) -> Array:
    """p_x of each member on every search task that any of them measured; NaN where unmeasured."""
    evaluations = [lineage[member].evaluation("search") for member in members]
    tasks = sorted({task for evaluation in evaluations for task in evaluation})
    return np.array(
        [[e[task].reward if task in e else np.nan for task in tasks] for e in evaluations],
        dtype=float,
    ).reshape(len(members), len(tasks))
