"""Intervals where both tasks and runs are drawn by chance: several searches, scored on tasks.

A mean over R runs × T tasks has three sources of luck: which tasks, which runs, and what is left
over. By the two-way analysis of variance without replication, the variance of the mean is that of
the task means plus that of the run means less that of the rest, which both of them hold.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from milo.core.fitness import Z_95, Interval, clustered_interval

Array = NDArray[np.float64]


def crossed_interval(values: Array) -> Interval:
    """95 % interval of the mean of `values` (runs, tasks); one run gives the task-clustered one.

    Normal quantiles: with very few runs the interval is a little too narrow.
    """
    table = np.asarray(values, dtype=float)
    runs, _ = table.shape
    over_tasks = clustered_interval(list(table.mean(axis=0)))
    if runs < 2:
        return over_tasks
    half = Z_95 * math.sqrt(crossed_variance(table))
    return Interval(over_tasks.mean, over_tasks.mean - half, over_tasks.mean + half)


def crossed_difference(first: Array, second: Array) -> Interval:
    """95 % interval of mean(first) − mean(second), whose runs are not paired but whose tasks are.

    Both are (runs, tasks) with the same tasks. The luck of tasks is that of the per-task
    differences of run means; each side adds the luck of its runs, where it has several. What is
    left over is counted twice, so the interval errs on the wide side.
    """
    gaps = first.mean(axis=0) - second.mean(axis=0)
    of_tasks = clustered_interval(list(gaps))
    of_runs = sum(
        float(side.mean(axis=1).var(ddof=1)) / len(side)
        for side in (first, second)
        if len(side) > 1
    )
    half = math.hypot(of_tasks.half_width, Z_95 * math.sqrt(of_runs))
    return Interval(of_tasks.mean, of_tasks.mean - half, of_tasks.mean + half)


def crossed_variance(table: Array) -> float:
    """Variance of the mean of a (runs, tasks) table, at least that of its larger part.

    Needs two runs; infinite for a single task.
    """
    runs, tasks = table.shape
    if tasks < 2:
        return math.inf
    of_tasks = float(table.mean(axis=0).var(ddof=1)) / tasks
    of_runs = float(table.mean(axis=1).var(ddof=1)) / runs
    rest = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    of_rest = float((rest**2).sum()) / ((runs - 1) * (tasks - 1)) / (runs * tasks)
    return float(max(of_tasks + of_runs - of_rest, of_tasks, of_runs))


def normal_p(interval: Interval) -> float:
    """Two-sided p-value of a zero mean, by the normal error that the interval stands for."""
    error = interval.half_width / Z_95
    if not math.isfinite(error):
        return 1.0
    if error == 0.0:
        return 1.0 if interval.mean == 0 else 0.0
    return math.erfc(abs(interval.mean) / error / math.sqrt(2.0))
