"""The leaderboard: methods on the same tasks, with intervals, costs and paired tests.

Runs of the same method are its replicates. Everything is compared on the tasks that every row has
measured, with equal content; a difference whose adjusted p-value is not below 0.05 is unresolved.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from milo.core.attempt import Outcome, Usage
from milo.core.errors import RunError
from milo.core.fitness import Interval, TaskScore
from milo.protocols.crossed import crossed_difference, crossed_interval, normal_p
from milo.protocols.entries import Entry
from milo.protocols.paired import holm, sign_flip_p
from milo.protocols.rates import pass_hat
from milo.protocols.samples import (
    Array,
    Sample,
    TaskKey,
    groups,
    pooled_seeds,
    resolved,
    reward,
    sample_of,
    seed_sample,
    shared,
)
from milo.protocols.standing import Figures, Leaderboard, Pair, Row, against

METRICS = {"PR": reward, "RR": resolved}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Searched:
    """Mean cost of a method's runs; None for a harness that no search made."""

    attempts: float | None = None
    tokens: float | None = None
    dollars: float | None = None
    hours: float | None = None


def leaderboard(
    entries: Sequence[Entry], rng: np.random.Generator, *, each: bool = False
) -> Leaderboard:
    """Rank the entries' winners and the seeds that they started from.

    `each` gives every run a row of its own. `rng` draws the permutations of larger tests. Raises
    `RunError` where the winners share no measured task.
    """
    methods, seeds = groups(entries, each), pooled_seeds(entries)
    winners = [entry.winner for entry in entries]
    tasks = shared([*winners, *seeds.values()])
    if not tasks:  # a seed need not have been tested; a winner must
        seeds, tasks = {}, shared(winners)
    if not tasks:
        raise RunError("runs to compare", "tasks that all of their winners were scored on", "none")
    samples = [sample_of(name, runs, tasks) for name, runs in methods.items()]
    samples += [seed_sample(name, seed, tasks) for name, seed in seeds.items()]
    rows = [_row(sample, tasks) for sample in samples]
    base = max((row for row in rows if not row.runs), key=_merit, default=None)
    return Leaderboard(
        split=entries[0].split,
        tasks=len(tasks),
        baseline=base.name if base else "",
        rows=tuple(sorted((_placed(row, base) for row in rows), key=_merit, reverse=True)),
        pairs=tuple(_pairs(samples, tasks, rng)),
        notes=tuple(_notes(entries, len(tasks), bool(seeds))),
    )


def _merit(row: Row) -> tuple[float, float]:
    return (row.reward.mean, -row.figures.tokens)


def _placed(row: Row, base: Row | None) -> Row:
    if base is None or row is base:
        return row
    return replace(row, against=against(row.figures, base.figures))


# --- rows -----------------------------------------------------------------------------------------


def _row(sample: Sample, tasks: Sequence[TaskKey]) -> Row:
    outcomes = [o for s in sample.harnesses for task in tasks for o in s.outcomes[task]]
    valid = [o for o in outcomes if o.is_valid]
    k = min(table[task].n for table in sample.tables for task in tasks)
    rates = {name: crossed_interval(sample.values(tasks, of)) for name, of in METRICS.items()}
    searched = _searched(sample.entries)
    return Row(
        name=sample.name,
        runs=len(sample.entries),
        k=k,
        coverage=len(valid) / len(outcomes),
        reward=rates["PR"],
        resolved=rates["RR"],
        pass_at_k=float(sample.values(tasks, lambda s: float(s.resolved > 0)).mean()),
        pass_hat_k=_mean([_pass_hat(table, k) for table in sample.tables]),
        figures=_figures(rates["PR"], rates["RR"], valid),
        searched_attempts=searched.attempts,
        searched_tokens=searched.tokens,
        searched_dollars=searched.dollars,
        searched_hours=searched.hours,
        winners=tuple(s.candidate for s in sample.harnesses) if sample.entries else (),
    )


def _figures(pr: Interval, rr: Interval, valid: Sequence[Outcome]) -> Figures:
    usage = sum((o.usage for o in valid), Usage())
    return Figures(
        reward=pr.mean,
        resolved=rr.mean,
        tokens=usage.tokens / len(valid),
        latency_s=math.fsum(o.latency_s for o in valid) / len(valid),
        dollars=None if usage.dollars is None else usage.dollars / len(valid),
    )


def _searched(entries: Sequence[Entry]) -> _Searched:
    if not entries:
        return _Searched()
    costs = [entry.cost for entry in entries]
    dollars = [cost.usage.dollars for cost in costs if cost.usage.dollars is not None]
    return _Searched(
        attempts=_mean([cost.attempts for cost in costs]),
        tokens=_mean([cost.usage.tokens for cost in costs]),
        dollars=_mean(dollars) if len(dollars) == len(costs) else None,
        hours=_mean([cost.hours for cost in costs]),
    )


def _pass_hat(table: Mapping[TaskKey, TaskScore], k: int) -> float:
    named = {"@".join(task): score for task, score in table.items()}
    return pass_hat(named, list(named), k)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# --- pairs ----------------------------------------------------------------------------------------


def _pairs(
    samples: Sequence[Sample], tasks: Sequence[TaskKey], rng: np.random.Generator
) -> list[Pair]:
    """Every pair of rows on both metrics; p-values are adjusted over the pairs of a metric."""
    found: list[Pair] = []
    for metric, of in METRICS.items():
        pairs = list(itertools.combinations(samples, 2))
        tests = [_test(a, b, a.values(tasks, of), b.values(tasks, of), rng) for a, b in pairs]
        adjusted = holm([p for _, p in tests])
        for (a, b), (difference, p), q in zip(pairs, tests, adjusted, strict=True):
            found.append(
                Pair(
                    first=a.name,
                    second=b.name,
                    metric=metric,
                    difference=difference,
                    p_value=p,
                    adjusted_p=q,
                )
            )
    return found


def _test(
    a: Sample, b: Sample, mine: Array, theirs: Array, rng: np.random.Generator
) -> tuple[Interval, float]:
    """The difference and its p-value: by permutation over tasks for single runs, else normal."""
    if len(mine) == len(theirs) == 1:
        gaps = mine[0] - theirs[0]
        return crossed_interval(gaps[None, :]), sign_flip_p(list(gaps), rng)
    paired = _run_seeds(a) == _run_seeds(b) and len(mine) == len(theirs)
    difference = crossed_interval(mine - theirs) if paired else crossed_difference(mine, theirs)
    return difference, normal_p(difference)


def _run_seeds(sample: Sample) -> list[int]:
    return [entry.seed for entry in sample.entries]


# --- notes ----------------------------------------------------------------------------------------


def _notes(entries: Sequence[Entry], tasks: int, seeds: bool) -> list[str]:
    """What the reader must know before believing a difference."""
    notes = []
    most = max(len(entry.tasks) for entry in entries)
    if tasks < most:
        notes.append(f"compared on {tasks} of {most} tasks: those that every row has measured")
    if not seeds:
        notes.append("no seed was scored on these tasks, so there is no baseline")
    for word, values in (
        ("models", {entry.model for entry in entries}),
        ("suites", {entry.suite for entry in entries}),
    ):
        if len(values) > 1:
            notes.append(f"the runs have different {word}: {', '.join(sorted(values))}")
    if entries[0].split == "validation":
        notes.append("winners were chosen on this split, so their rates are optimistic")
    notes += [f"{entry.run} has not ended" for entry in entries if not entry.ended]
    return notes
