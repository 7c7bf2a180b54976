"""Intervals over runs and tasks: right in what they hold, by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from milo.core.fitness import Interval, clustered_interval
from milo.protocols.crossed import crossed_difference, crossed_interval, crossed_variance, normal_p


def sample(
    rng: np.random.Generator, runs: int, tasks: int, of_runs: float, of_tasks: float
) -> np.ndarray:
    return (
        of_runs * rng.normal(size=(runs, 1))
        + of_tasks * rng.normal(size=(1, tasks))
        + 0.3 * rng.normal(size=(runs, tasks))
    )


def test_one_run_gives_the_task_clustered_interval(rng: np.random.Generator) -> None:
    values = rng.normal(size=(1, 9))
    assert crossed_interval(values) == clustered_interval(list(values[0]))


@pytest.mark.parametrize(("of_runs", "of_tasks"), [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)])
def test_the_interval_holds_the_mean_about_as_often_as_it_says(
    rng: np.random.Generator, of_runs: float, of_tasks: float
) -> None:
    found = [crossed_interval(sample(rng, 12, 30, of_runs, of_tasks)) for _ in range(500)]
    held = np.mean([interval.low <= 0 <= interval.high for interval in found])
    assert 0.90 <= held <= 0.98


def test_runs_that_agree_tell_no_more_than_one_of_them(rng: np.random.Generator) -> None:
    one = rng.normal(size=(1, 20))
    thrice = np.repeat(one, 3, axis=0)
    assert crossed_interval(thrice).half_width == pytest.approx(crossed_interval(one).half_width)


def test_unpaired_runs_widen_a_difference(rng: np.random.Generator) -> None:
    a, b = sample(rng, 4, 20, 0.5, 1.0), sample(rng, 4, 20, 0.5, 1.0)
    wide = crossed_difference(a, b)
    assert wide.mean == pytest.approx(a.mean() - b.mean())
    assert wide.half_width > clustered_interval(list(a.mean(axis=0) - b.mean(axis=0))).half_width


def test_a_normal_p_value_crosses_a_twentieth_where_the_interval_touches_zero() -> None:
    assert normal_p(Interval(1.0, 0.0, 2.0)) == pytest.approx(0.05)
    assert normal_p(Interval(0.0, -1.0, 1.0)) == 1.0
    assert normal_p(Interval(1.0, -math.inf, math.inf)) == 1.0
    assert normal_p(Interval(0.5, 0.5, 0.5)) == 0.0
    assert normal_p(Interval(0.0, 0.0, 0.0)) == 1.0


def test_a_single_task_tells_nothing() -> None:
    assert crossed_variance(np.array([[1.0], [0.0]])) == math.inf
