"""Attempts, fitness and hypervolume, the last against two independent implementations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from pymoo.indicators.hv import HV

from milo.core.attempt import AttemptKey, Outcome, Status, Timings, Usage, is_reward
from milo.core.fitness import (
    Fitness,
    Interval,
    TaskScore,
    clustered_interval,
    evaluate,
    fitness_on,
    mean_reward,
    missing_tasks,
    paired_difference,
    pass_at_k,
    resolution_rate,
    score_task,
    standard_error,
)
from milo.core.hypervolume import Frame, hypervolume, hypervolume_gain, nondominated

INFRASTRUCTURE = {Status.ENVIRONMENT_ERROR, Status.VERIFIER_ERROR, Status.MODEL_ERROR}


def outcome(task: str = "t", reward: float | None = 1.0, index: int = 0, **changes) -> Outcome:
    key = AttemptKey(harness="h" * 20, task=task, task_digest="d" * 20, model="m", index=index)
    status = Status.COMPLETED if reward is not None else Status.MODEL_ERROR
    return Outcome(**{"key": key, "status": status, "reward": reward, **changes})


# --- attempts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", list(Status))
def test_only_our_own_failures_are_infrastructure(status):
    assert status.is_infrastructure == (status in INFRASTRUCTURE)


@pytest.mark.parametrize("value", [True, False, math.nan, math.inf, -0.1, 1.1, "1", None])
def test_nan_infinities_booleans_and_text_are_no_rewards(value):
    assert not is_reward(value)


def test_a_reward_is_a_number_from_zero_to_one():
    assert is_reward(0)
    assert is_reward(1.0)


def test_an_outcome_refuses_what_is_no_reward_and_statuses_that_contradict_it():
    with pytest.raises(ValueError, match="not a finite number"):
        outcome(reward=2.0)
    with pytest.raises(ValueError, match="does not go with"):
        outcome(reward=None, status=Status.COMPLETED)
    with pytest.raises(ValueError, match="does not go with"):
        outcome(reward=0.0, status=Status.VERIFIER_ERROR)


def test_latency_is_the_agent_phase_alone():
    timed = outcome(timings=Timings(queued_s=5, setup_s=4, agent_s=1.5, verifier_s=9))
    assert timed.latency_s == 1.5
    assert timed.timings.slot_s == 14.5
    assert evaluate([timed])["t"].slot_s == 14.5
    assert timed.is_valid
    assert not outcome(reward=None).is_valid


def test_an_attempt_key_reads_as_one_line():
    assert str(outcome().key) == "hhhhhhhhhhhhhhhh/t@dddddddddddd/m/0.0"


def test_usages_add_up_and_an_unknown_price_stays_unknown():
    one = Usage(uncached_input=1, cached_input=2, cache_write=3, output=4, reasoning=2, calls=1)
    assert one.tokens == 10
    assert (one + one).tokens == 20
    assert (one + one).dollars == 0.0
    assert (one + Usage(dollars=None)).dollars is None
    assert (one + Usage(estimated=True)).estimated


# --- fitness --------------------------------------------------------------------------------------


def test_scores_aggregate_valid_attempts_only():
    usage = Usage(output=10)
    score = score_task(
        [outcome(resolved=True, usage=usage), outcome(reward=0.0), outcome(reward=None)]
    )
    assert score == TaskScore(n=2, reward=0.5, resolved=1, tokens=5.0, latency_s=0.0)
    assert score_task([outcome(reward=None)]) is None


def test_tasks_without_a_valid_attempt_are_left_out_of_an_evaluation():
    evaluation = evaluate([outcome("b"), outcome("a"), outcome("c", reward=None)])
    assert list(evaluation) == ["a", "b"]
    assert missing_tasks(evaluation, ("a", "c")) == ("c",)


def test_accuracy_weighs_tasks_and_costs_weigh_attempts():
    evaluation = {
        "a": TaskScore(n=1, reward=1.0, resolved=1, tokens=100.0, latency_s=1.0),
        "b": TaskScore(n=3, reward=0.0, resolved=0, tokens=20.0, latency_s=3.0),
    }
    assert fitness_on(evaluation, ("a", "b")) == Fitness(0.5, 40.0, 2.5)
    with pytest.raises(KeyError):
        fitness_on(evaluation, ("a", "z"))


def test_metrics_carry_task_clustered_intervals():
    evaluation = {
        "a": TaskScore(n=2, reward=0.75, resolved=1, tokens=1, latency_s=1),
        "b": TaskScore(n=2, reward=0.25, resolved=0, tokens=1, latency_s=1),
    }
    tasks = ("a", "b")
    mean = mean_reward(evaluation, tasks)
    assert mean.mean == 0.5
    assert mean.half_width == pytest.approx(1.96 * 0.25, rel=1e-3)
    assert resolution_rate(evaluation, tasks).mean == 0.25
    assert pass_at_k(evaluation, tasks) == 0.5
    assert paired_difference(evaluation, evaluation, tasks) == Interval(0.0, 0.0, 0.0)


def test_one_task_has_no_finite_interval():
    assert standard_error([0.5]) == math.inf
    assert clustered_interval([0.5]).low == -math.inf


def test_dominance_is_at_least_as_good_everywhere_and_better_once():
    a = Fitness(0.5, 10, 1)
    assert a.dominates(Fitness(0.5, 11, 1))
    assert a.dominates(Fitness(0.4, 10, 1))
    assert not a.dominates(a)
    assert not a.dominates(Fitness(0.6, 11, 1))


# --- the frame ------------------------------------------------------------------------------------


def test_the_frame_has_floors_for_a_seed_that_solves_nothing_at_no_cost():
    frame = Frame.fixed_by(Fitness(0.0, 0.0, 0.0), [Fitness(0.0, 0.0, 0.0)], k=2, n_tasks=5)
    assert frame.seed_accuracy == 0.1
    assert frame.token_scale > 0
    assert frame.latency_scale > 0


def test_the_frame_takes_the_costliest_seed():
    seeds = [Fitness(0.5, 100, 1), Fitness(0.1, 50, 9)]
    frame = Frame.fixed_by(seeds[0], seeds, k=1, n_tasks=10)
    assert (frame.token_scale, frame.latency_scale) == (100, 9)
    assert frame.reference == pytest.approx((0.6, 1.0, 1.0))
    assert frame.points([Fitness(0.5, 100, 9)]).tolist() == [[0.5, 0.5, 0.5]]


def test_no_cost_falls_off_the_scale():
    frame = Frame(seed_accuracy=0.5, token_scale=1.0, latency_scale=1.0)
    assert (frame.points([Fitness(0.5, 1e9, 1e9)])[0] < frame.reference).all()


# --- hypervolume ----------------------------------------------------------------------------------

REF = (1.0, 1.0, 1.0)


def by_inclusion_exclusion(points, reference) -> float:
    """Volume of a union of boxes as the signed sum over all subsets."""
    inside = [p for p in points if all(a < r for a, r in zip(p, reference, strict=True))]
    total = 0.0
    for size in range(1, len(inside) + 1):
        for subset in itertools.combinations(inside, size):
            corner = [max(axis) for axis in zip(*subset, strict=True)]
            box = math.prod(r - c for r, c in zip(reference, corner, strict=True))
            total += box if size % 2 else -box
    return total


def by_cells(points, reference) -> float:
    """Volume by cutting space at every coordinate and adding up the dominated cells."""
    cuts = [
        sorted({p[d] for p in points if p[d] < reference[d]} | {reference[d]}) for d in range(3)
    ]
    total = 0.0
    for x, y, z in itertools.product(*(itertools.pairwise(axis) for axis in cuts)):
        low = (x[0], y[0], z[0])
        if any(all(a <= b for a, b in zip(p, low, strict=True)) for p in points):
            total += (x[1] - x[0]) * (y[1] - y[0]) * (z[1] - z[0])
    return total


@pytest.mark.parametrize("seed", range(20))
def test_hypervolume_agrees_with_two_other_implementations_and_pymoos_own(seed):
    rng = np.random.default_rng(seed)
    points = rng.random((rng.integers(1, 8), 3)) * 1.2
    expected = by_inclusion_exclusion(points, REF)
    assert hypervolume(points, REF) == pytest.approx(expected, abs=1e-12)
    assert by_cells(points, REF) == pytest.approx(expected, abs=1e-12)
    inside = points[(points < 1.0).all(axis=1)]
    if len(inside):
        assert HV(ref_point=np.array(REF))(inside) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_gain_is_the_difference_of_two_hypervolumes(seed):
    rng = np.random.default_rng(seed)
    front, child = rng.random((12, 3)), rng.random(3) * 1.1
    difference = hypervolume(np.vstack([front, child]), REF) - hypervolume(front, REF)
    assert hypervolume_gain(front, child, REF) == pytest.approx(difference, abs=1e-12)


def test_boundary_points_and_empty_fronts():
    assert hypervolume(np.empty((0, 3)), REF) == 0.0
    assert hypervolume(np.array([[0.0, 0.0, 1.0]]), REF) == 0.0
    assert hypervolume_gain(np.empty((0, 3)), np.array([0.5, 0.5, 0.5]), REF) == 0.125
    assert hypervolume_gain(np.empty((0, 3)), np.array([0.5, 0.5, 1.0]), REF) == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_non_finite_points_are_refused(bad):
    good, broken = np.array([[0.5, 0.5, 0.5]]), np.array([[0.5, bad, 0.5]])
    with pytest.raises(ValueError, match="finite"):
        hypervolume(broken, REF)
    with pytest.raises(ValueError, match="finite"):
        hypervolume_gain(good, broken[0], REF)
    with pytest.raises(ValueError, match="finite"):
        hypervolume_gain(broken, good[0], REF)


def test_of_equal_front_members_the_first_stays():
    a, b = Fitness(0.5, 10, 1), Fitness(0.4, 9, 1)
    assert nondominated([a, b, a, Fitness(0.3, 20, 2)]) == (0, 1)
