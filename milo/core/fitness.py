"""Fitness: (accuracy, tokens, latency) of a harness on tasks, and its metrics (SPEC §2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from milo.core.attempt import Outcome

Z_95 = 1.959963984540054


class Fitness(NamedTuple):
    """Accuracy in [0, 1] (larger is better), mean tokens and mean seconds (smaller is better)."""

    accuracy: float
    tokens: float
    latency_s: float

    def dominates(self, other: Fitness) -> bool:
        """At least as good on every axis and better on one."""
        mine = (-self.accuracy, self.tokens, self.latency_s)
        theirs = (-other.accuracy, other.tokens, other.latency_s)
        return all(a <= b for a, b in zip(mine, theirs, strict=True)) and mine != theirs


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskScore:
    """The valid attempts on one task, aggregated.

    `n` attempts with mean reward `reward` (= p_x), `resolved` of them full solves, mean tokens
    and mean seconds per attempt: of the harness (`latency_s`), and for which a slot is taken (0 in
    records that do not tell). `flags` are the signs of reward hacking that any of them bears.
    """

    n: int
    reward: float
    resolved: int
    tokens: float
    latency_s: float
    slot_s: float = 0.0
    flags: tuple[str, ...] = ()


class Interval(NamedTuple):
    """A 95 % interval around a mean; `low` and `high` in the unit of the mean."""

    mean: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """The ± of a leaderboard."""
        return (self.high - self.low) / 2


Evaluation = Mapping[str, TaskScore]
"""Per-task scores of one harness, by task id."""


def score_task(outcomes: Sequence[Outcome]) -> TaskScore | None:
    """Aggregate one task's outcomes; None where no attempt is valid."""
    valid = [outcome for outcome in outcomes if outcome.is_valid]
    if not valid:
        return None
    n = len(valid)
    return TaskScore(
        n=n,
        reward=math.fsum(o.reward or 0.0 for o in valid) / n,
        resolved=sum(o.resolved for o in valid),
        tokens=sum(o.usage.tokens for o in valid) / n,
        latency_s=math.fsum(o.latency_s for o in valid) / n,
        slot_s=math.fsum(o.timings.slot_s for o in valid) / n,
        flags=tuple(sorted({flag for o in valid for flag in o.flags})),
    )


def evaluate(outcomes: Iterable[Outcome]) -> dict[str, TaskScore]:
    """Group outcomes by task, in task-id order; tasks without a valid attempt are left out."""
    grouped: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        grouped.setdefault(outcome.key.task, []).append(outcome)
    scores = {task: score_task(grouped[task]) for task in sorted(grouped)}
    return {task: score for task, score in scores.items() if score is not None}


def missing_tasks(evaluation: Evaluation, tasks: Iterable[str]) -> tuple[str, ...]:
    """Tasks on which the harness has no valid attempt; it is incomplete while there are any."""
    return tuple(task for task in tasks if task not in evaluation)


def fitness_on(evaluation: Evaluation, tasks: Sequence[str]) -> Fitness:
    """Fitness over exactly these tasks; raises `KeyError` where the evaluation is incomplete.

    Accuracy weighs tasks equally; tokens and latency are means per attempt.
    """
    scores = [evaluation[task] for task in tasks]
    attempts = sum(score.n for score in scores)
    return Fitness(
        accuracy=math.fsum(score.reward for score in scores) / len(scores),
        tokens=math.fsum(score.tokens * score.n for score in scores) / attempts,
        latency_s=math.fsum(score.latency_s * score.n for score in scores) / attempts,
    )


def mean_reward(evaluation: Evaluation, tasks: Sequence[str]) -> Interval:
    """PR@k with its task-clustered 95 % interval."""
    return clustered_interval([evaluation[task].reward for task in tasks])


def resolution_rate(evaluation: Evaluation, tasks: Sequence[str]) -> Interval:
    """RR@k with its task-clustered 95 % interval."""
    return clustered_interval([evaluation[t].resolved / evaluation[t].n for t in tasks])


def pass_at_k(evaluation: Evaluation, tasks: Sequence[str]) -> float:
    """Share of tasks resolved at least once."""
    return sum(evaluation[task].resolved > 0 for task in tasks) / len(tasks)


def paired_difference(a: Evaluation, b: Evaluation, tasks: Sequence[str]) -> Interval:
    """Mean of p_x(a) − p_x(b) over tasks, with its paired task-clustered 95 % interval."""
    return clustered_interval([a[task].reward - b[task].reward for task in tasks])


def clustered_interval(values: Sequence[float]) -> Interval:
    """Normal 95 % interval with the task as the cluster; one value has an infinite interval."""
    array = np.asarray(values, dtype=float)
    mean = float(array.mean())
    half = Z_95 * standard_error(values)
    return Interval(mean, mean - half, mean + half)


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean over clusters; infinite where it can't be estimated."""
    array = np.asarray(values, dtype=float)
    if array.size < 2:
        return math.inf
    return float(array.std(ddof=1) / math.sqrt(array.size))
