"""How often a harness succeeds: Pass^k and pass@k from any number of attempts, and over runs.

PR@k, RR@k and the plain pass@k are `milo.core.fitness`'s; here stand their relatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from milo.core.fitness import (
    Evaluation,
    Interval,
    TaskScore,
    clustered_interval,
    fitness_on,
    mean_reward,
    pass_at_k,
    resolution_rate,
    standard_error,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """One harness on some tasks: PR@k and RR@k with task-clustered 95 % intervals, pass@k and
    Pass^k as shares of tasks, mean tokens and seconds per attempt."""

    tasks: int
    k: int
    reward: Interval
    resolved: Interval
    pass_at_k: float
    pass_hat_k: float
    tokens: float
    latency_s: float


def rates(evaluation: Evaluation, tasks: Sequence[str]) -> Rates:
    """All rates over exactly these tasks; raises `KeyError` where one is unmeasured.

    k is the smallest number of valid attempts on a task, so that no rate promises more.
    """
    k = min(evaluation[task].n for task in tasks)
    fitness = fitness_on(evaluation, tasks)
    return Rates(
        tasks=len(tasks),
        k=k,
        reward=mean_reward(evaluation, tasks),
        resolved=resolution_rate(evaluation, tasks),
        pass_at_k=pass_at_k(evaluation, tasks),
        pass_hat_k=pass_hat(evaluation, tasks, k),
        tokens=fitness.tokens,
        latency_s=fitness.latency_s,
    )


def pass_hat(evaluation: Evaluation, tasks: Sequence[str], k: int) -> float:
    """Pass^k: the share of tasks that k attempts would all resolve (Evo-Bench's Claw-Eval rule).

    From n ≥ k attempts with c resolved it is estimated without bias by C(c, k) / C(n, k); with
    n = k it is the share of tasks resolved every time.
    """
    return _mean_over(evaluation, tasks, lambda s: _choose(s.resolved, k) / _choose_all(s, k))


def pass_at(evaluation: Evaluation, tasks: Sequence[str], k: int) -> float:
    """The share of tasks that at least one of k attempts would resolve: 1 − C(n−c, k) / C(n, k)."""
    return _mean_over(
        evaluation, tasks, lambda s: 1.0 - _choose(s.n - s.resolved, k) / _choose_all(s, k)
    )


def over_runs(values: Sequence[float]) -> Interval:
    """Mean ± one standard error over runs, PaperBench's ±; unknown (infinite) for one run."""
    interval = clustered_interval(values)
    error = standard_error(values)
    return Interval(interval.mean, interval.mean - error, interval.mean + error)


def _mean_over(
    evaluation: Evaluation, tasks: Sequence[str], rate: Callable[[TaskScore], float]
) -> float:
    return math.fsum(rate(evaluation[task]) for task in tasks) / len(tasks)


def _choose(n: int, k: int) -> int:
    return math.comb(n, k)


def _choose_all(score: TaskScore, k: int) -> int:
    if not 1 <= k <= score.n:
        raise ValueError(f"k = {k} needs between 1 and n = {score.n} attempts")
    return math.comb(score.n, k)
