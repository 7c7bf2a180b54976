"""Optimizers: models that agree with finite differences, and searches that improve."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from milo.suites.arena.harness.seeds import SCHEDULES, seed_trees
from milo.suites.arena.optimizer.descents import descend
from milo.suites.arena.optimizer.factory import landscape_of
from milo.suites.arena.optimizer.interior import Curved, descend_inside
from milo.suites.arena.optimizer.landscape import Linear, Smooth
from milo.suites.arena.optimizer.moves import MOVES
from milo.suites.arena.optimizer.search import State, begin, run
from milo.suites.arena.problems.catalogue import candidate_of, problems
from milo.suites.arena.problems.problem import verify
from milo.suites.arena.tasks import SIZES, generate, start_of

PROBLEMS = problems()
SMOOTH = [name for name in PROBLEMS if isinstance(landscape_of(name), Smooth)]
CURVED = [name for name in PROBLEMS if isinstance(landscape_of(name), Curved)]
LINEAR = [name for name in PROBLEMS if isinstance(landscape_of(name), Linear)]


def ticking() -> Callable[[], float]:
    """A clock that goes on by a hundredth each time it is looked at."""
    ticks = itertools.count()
    return lambda: next(ticks) * 0.01


def state(name: str, seconds: float = 2.0, steps: int = 12) -> State:
    landscape = landscape_of(name)
    rng = np.random.default_rng(4)
    start = landscape.random(rng, np.zeros(SIZES.get(name, (steps,))))
    return begin(PROBLEMS[name], start, seed=1, seconds=seconds, most=64, clock=ticking())


@pytest.mark.parametrize("name", SMOOTH)
def test_smoothed_gradients_are_those_of_finite_differences(name: str) -> None:
    landscape = landscape_of(name)
    assert isinstance(landscape, Smooth)
    rng = np.random.default_rng(0)
    x = landscape.repair(rng.random(SIZES.get(name, (15,))) * 0.5 + 0.2)
    direction = rng.normal(size=x.shape)
    h = 1e-6
    ahead, _ = landscape.smoothed(x + h * direction, 30.0)
    behind, _ = landscape.smoothed(x - h * direction, 30.0)
    slope = float((landscape.smoothed(x, 30.0)[1] * direction).sum())
    assert slope == pytest.approx((ahead - behind) / (2 * h), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", CURVED)
def test_slopes_pull_and_bend_are_the_derivatives_of_the_pieces(name: str) -> None:
    landscape = landscape_of(name)
    assert isinstance(landscape, Curved)
    rng = np.random.default_rng(0)
    x, direction, weights = rng.random(11), rng.normal(size=11), rng.random(21)
    every, h = np.arange(21), 1e-4
    ahead, behind = (landscape.pieces(x + s * h * direction) for s in (1, -1))
    assert landscape.slopes(x, every) @ direction == pytest.approx((ahead - behind) / (2 * h))
    assert landscape.pulled(x, weights) == pytest.approx(weights @ landscape.slopes(x, every))
    curved = (ahead - 2 * landscape.pieces(x) + behind) / h**2
    second = direction @ landscape.bend(weights) @ direction
    assert second == pytest.approx(weights @ curved, rel=1e-5)


@pytest.mark.parametrize("name", CURVED)
def test_an_interior_descent_keeps_sum_and_bounds_and_finds_an_optimum(name: str) -> None:
    landscape = landscape_of(name)
    assert isinstance(landscape, Curved)
    start = landscape.random(np.random.default_rng(2), np.zeros(20))
    found = descend_inside(landscape, start, start=0.1, end=1e-9, going=lambda _: True)
    assert found.mean() == pytest.approx(start.mean(), rel=1e-12)
    assert landscape.lower is None or found.min() > landscape.lower
    assert landscape.upper is None or found.max() < landscape.upper
    value = landscape.value(found)
    assert value < landscape.value(start)
    # A linear model finds nothing to gain any more that is worth a thousandth of its radius.
    step = landscape.step(landscape.repair(found), 1e-4)
    assert step is not None
    assert value - step.promised < 1e-7


def test_an_interior_descent_is_given_up_where_it_is_told_to() -> None:
    landscape = landscape_of("erdos-min-overlap")
    assert isinstance(landscape, Curved)
    start = landscape.random(np.random.default_rng(2), np.zeros(20))
    hopes: list[float] = []

    def going(hope: float) -> bool:
        hopes.append(hope)
        return len(set(hopes)) < 3

    descend_inside(landscape, start, start=0.1, end=1e-9, going=going)
    first, second, third = sorted(set(hopes))
    assert first == -math.inf
    assert second < third < landscape.value(start)
    assert hopes.count(third) == 1


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_landscape_and_its_verifier_mean_the_same(name: str) -> None:
    landscape, problem = landscape_of(name), PROBLEMS[name]
    x = landscape.random(np.random.default_rng(2), np.zeros(SIZES.get(name, (20,))))
    value = verify(problem, candidate_of(problem, x)).value
    near = 2e-3 if name == "flat-polynomials" else 1e-9
    assert landscape.value(x) == pytest.approx(-problem.sign * value, rel=near)


@pytest.mark.parametrize("name", LINEAR)
def test_linear_descent_gets_better_and_stays_acceptable(name: str) -> None:
    searching = state(name)
    begun = searching.value(searching.x)
    x, value = descend(searching, searching.x, 1.5, radius=0.1, floor=1e-6, hopeless=math.inf)
    assert value < begun
    problem = PROBLEMS[name]
    assert verify(problem, candidate_of(problem, x)).value == pytest.approx(
        -problem.sign * value, rel=1e-9
    )


@pytest.mark.parametrize("move", MOVES)
def test_no_move_loses_the_best_and_each_leaves_a_valid_point(move: str) -> None:
    searching = state("first-autocorrelation-inequality")
    before = searching.best
    MOVES[move](searching, 0.5)
    assert searching.best <= before
    assert math.isfinite(searching.value(searching.x))
    assert searching.best == pytest.approx(searching.problem.direct(searching.best_x))


def test_a_schedule_runs_until_the_deadline_and_names_an_unknown_move() -> None:
    searching = state("erdos-min-overlap", seconds=1.0)
    run(searching, [{"move": "linearise"}, {"move": "hop", "share": 2.0}], MOVES)
    assert searching.left() <= 0
    with pytest.raises(KeyError):
        run(state("erdos-min-overlap"), [{"move": "wish"}], MOVES)


def test_every_seed_is_a_harness_with_a_schedule_of_known_moves() -> None:
    trees = seed_trees(with_model=True)
    assert set(trees) == {*SCHEDULES, "reviser"}
    assert set(seed_trees(with_model=False)) == set(SCHEDULES)
    for name in SCHEDULES:
        scope: dict[str, list[dict[str, object]]] = {}
        exec(trees[name].text("schedule.py"), {}, scope)
        assert {entry["move"] for entry in scope["SCHEDULE"]} <= set(MOVES)


def test_tasks_hold_a_start_an_optimizer_and_a_target_that_is_better() -> None:
    tasks = generate(("erdos-min-overlap", "circle-packing"), count=4)
    assert len(tasks) == 8
    for task in tasks.values():
        assert {"construction.json", "problem.json", "optimizer/main.py"} <= set(task.workspace)
        assert "milo/suites/arena/problems/catalogue.py" in task.tests
        problem = PROBLEMS[task.family]
        start = start_of(problem, int(task.id[-3:]))
        frozen = verify(problem, candidate_of(problem, start.construction)).value
        assert problem.gain(start.target, over=frozen) > 0
