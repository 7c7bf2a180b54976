"""The moves: each works on a state for at most some seconds and leaves its best point in `x`.

A move that the landscape has no use for returns at once. Radii and sizes are relative to the
landscape's own scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from milo.suites.arena.optimizer.descents import Reached, descend, inside, settle, smooth_descent
from milo.suites.arena.optimizer.landscape import Scaled, Smooth
from milo.suites.arena.optimizer.search import State
from milo.suites.arena.problems.problem import Array

KICK = 0.3
"""Size of a kick among coarse functions, at most."""
SAME = 1e-7
"""Values nearer to each other than this are of one optimum."""
HOPE = 2e-3
"""Relative distance from the best at which a descent on its way is given up."""


def linearise(state: State, seconds: float, radius: float = 0.1, floor: float = 1e-9) -> None:
    """Linearised minimax steps from the present point."""
    until = state.clock() + seconds
    state.x, _ = descend(state, state.x, until, radius=radius, floor=floor, hopeless=math.inf)
    state.offer(state.x)


def interior(state: State, seconds: float, start: float = 1e-3, end: float = 1e-12) -> None:
    """An interior-point descent from the present point, its barrier let down from `start`."""
    until = state.clock() + seconds
    _take(state, inside(state, state.x, until, start=start, end=end, hopeless=math.inf))


def hop(
    state: State, seconds: float, size: float = 0.15, radius: float = 0.01, warmth: float = 1e-4
) -> None:
    """Basin hopping: kick, descend, keep what is better (or barely worse, by `warmth`)."""
    until = state.clock() + seconds
    here = home = Reached(state.x, state.value(state.x))
    while state.clock() < until:
        kicked = state.landscape.kicked(here.x, state.rng, size * state.rng.random())
        bound = home.value + abs(home.value) * HOPE
        new = settle(state, kicked, until, radius=radius, hopeless=bound)
        if new.value < here.value + abs(home.value) * warmth * state.rng.exponential():
            here = new
        if new.value < home.value:
            home = new
            state.offer(new.x)
    state.x = home.x


def restart(
    state: State, seconds: float, radius: float = 0.1, short: int = 20, long: int = 60
) -> None:
    """Independent starts, each descended; the best of them replaces x where it is better.

    Functions are started on random grids between `short` and `long` steps.
    """
    until = state.clock() + seconds
    while state.clock() < until:
        like = state.x
        if isinstance(state.landscape, Scaled):
            like = np.zeros(int(state.rng.integers(short, max(short, long) + 1)))
        start = state.landscape.random(state.rng, like)
        least = state.value(state.x)
        bound = least + abs(least) * HOPE
        _take(state, settle(state, start, until, radius=_any(state, radius), hopeless=bound))


def refine(
    state: State, seconds: float, factor: int = 2, size: float = 0.05, radius: float = 2e-3
) -> None:
    """Multi-resolution: put a function on a grid `factor` times as fine, shake it, descend."""
    if not isinstance(state.landscape, Scaled) or len(state.x) * factor > state.most:
        return
    until = state.clock() + seconds
    _take(state, _refined(state, state.x, until, factor=factor, size=size, radius=radius))


def climb(
    state: State,
    seconds: float,
    coarse: int = 40,
    keep: int = 6,
    size: float = 0.2,
    radius: float = 0.05,
) -> None:
    """Multi-resolution from scratch: many coarse starts, the best refined level by level.

    A quarter of the time goes to the starts and to kicks of the best of them. Every level doubles
    the grid of the best `keep`, half as many as on the level before, again and again while its
    share of the time lasts; `size` and `radius` are the most that a refinement is given.
    """
    if not isinstance(state.landscape, Scaled):
        return
    until = state.clock() + seconds
    pool = _starts(state, coarse, keep, state.clock() + seconds / 4)
    levels = int(math.log2(max(1.0, state.most / (coarse * 1.5))))
    for level in range(levels):
        limit = state.clock() + (until - state.clock()) / (levels - level)
        pool = _finer(state, _best(pool, keep), limit, size, radius)
        keep = max(1, keep // 2)


def _finer(
    state: State, chosen: Sequence[Reached], until: float, size: float, radius: float
) -> list[Reached]:
    """The chosen functions refined in turn, shaken more or less each time, until the time is up."""
    pool: list[Reached] = []
    while chosen and state.clock() < until:
        one = chosen[len(pool) % len(chosen)]
        shake, height = _any(state, size), _any(state, radius)
        pool.append(_refined(state, one.x, until, factor=2, size=shake, radius=height))
        _take(state, pool[-1])
    return pool


def _starts(state: State, coarse: int, keep: int, until: float) -> list[Reached]:
    """Descents from random functions of about `coarse` steps, and from kicks of the best."""
    pool: list[Reached] = []
    while state.clock() < until:
        if len(pool) > 2 * keep and state.rng.random() < 0.5:
            best = _best(pool, keep)
            parent = best[int(state.rng.integers(len(best)))].x
            start = state.landscape.kicked(parent, state.rng, KICK * state.rng.random())
        else:
            like = np.zeros(int(state.rng.integers(coarse, coarse + coarse // 2 + 1)))
            start = state.landscape.random(state.rng, like)
        least = min((one.value for one in pool), default=math.inf)
        bound = least + abs(least) * HOPE
        pool.append(settle(state, start, until, radius=_any(state, 0.1), hopeless=bound))
        _take(state, pool[-1])
    return pool


def _best(pool: Sequence[Reached], keep: int) -> list[Reached]:
    """The best few, no optimum twice."""
    distinct: list[Reached] = []
    for one in sorted(pool, key=lambda one: one.value):
        if not distinct or one.value - distinct[-1].value > abs(one.value) * SAME:
            distinct.append(one)
        if len(distinct) == keep:
            break
    return distinct


def _any(state: State, radius: float) -> float:
    """A radius up to a hundred times smaller: wide ones lead far, and always to one place."""
    return radius * math.exp(-math.log(100.0) * float(state.rng.random()))


def _refined(
    state: State, x: Array, until: float, *, factor: int, size: float, radius: float
) -> Reached:
    """The function on a finer grid, shaken and descended.

    Without the shaking the finer function is a stationary point of every linear model.
    """
    assert isinstance(state.landscape, Scaled)
    fine = state.landscape.resized(x, len(x) * factor)
    shaken = state.landscape.repair(fine * (1 + size * state.rng.normal(size=len(fine))))
    return settle(state, shaken, until, radius=radius)


def _take(state: State, reached: Reached) -> None:
    """Go there if it is better than where the search is."""
    if reached.value < state.value(state.x):
        state.x = reached.x
        state.offer(reached.x)


def smooth(
    state: State, seconds: float, start: float = 1e3, end: float = 1e6, steps: int = 300
) -> None:
    """L-BFGS on a smoothed maximum that is sharpened from `start` to `end`."""
    if not isinstance(state.landscape, Smooth):
        return
    until = state.clock() + seconds
    sharpness, x = start, state.x
    while state.clock() < until and sharpness <= end:
        x = smooth_descent(state, x, until, sharpness, steps)
        state.offer(x)
        if state.value(x) < state.value(state.x):
            state.x = x
        sharpness *= 3


def subgradient(state: State, seconds: float, rate: float = 0.02, steps: int = 2000) -> None:
    """Projected subgradient steps with a falling step length."""
    landscape = state.landscape
    if not isinstance(landscape, Smooth):
        return
    until = state.clock() + seconds
    x = least_x = state.x
    least = state.value(x)
    for k in range(steps):
        if state.clock() > until:
            break
        _, slope = landscape.smoothed(x, math.inf)
        length = float(np.linalg.norm(slope))
        if length == 0:
            break
        reach = rate * float(np.linalg.norm(x)) / math.sqrt(1 + k)
        x = landscape.repair(x - slope * (reach / length))
        value = state.value(x)
        if value < least:
            least, least_x = value, x
    state.x = least_x
    state.offer(least_x)


def coordinate(state: State, seconds: float, size: float = 0.05, floor: float = 1e-9) -> None:
    """Coordinate search: one entry up or down, the reach halved after a sweep without gain."""
    until = state.clock() + seconds
    x, least = state.x, state.value(state.x)
    reach = size * max(float(np.abs(x).mean()), 1e-12)
    while state.clock() < until and reach > floor:
        better = False
        for at in state.rng.permutation(x.size):
            if state.clock() > until:
                break
            for sign in (1.0, -1.0):
                moved = x.copy()
                moved.flat[at] += sign * reach
                moved = state.landscape.repair(moved)
                value = state.value(moved)
                if value < least:
                    x, least, better = moved, value, True
                    break
        if not better:
            reach /= 2
    state.x = x
    state.offer(x)


def anneal(
    state: State, seconds: float, hot: float = 0.02, cold: float = 1e-4, size: float = 0.05
) -> None:
    """Simulated annealing with kicks; temperatures are relative to the value."""
    until = state.clock() + seconds
    x, value = state.x, state.value(state.x)
    home, least = x, value
    while (left := until - state.clock()) > 0:
        heat = abs(least) * cold * (hot / cold) ** (left / seconds)
        new = state.landscape.kicked(x, state.rng, size)
        reached = state.value(new)
        if reached < value or state.rng.random() < math.exp(min(0.0, (value - reached) / heat)):
            x, value = new, reached
        if reached < least:
            home, least = new, reached
            state.offer(new)
    state.x = home


def home(state: State, seconds: float) -> None:
    """Go back to the best construction."""
    state.x = state.landscape.repair(state.best_x)


MOVES = MappingProxyType(
    {
        move.__name__: move
        for move in (
            linearise, interior, hop, restart, refine, climb, smooth, subgradient, coordinate,
            anneal, home,
        )
    }
)  # fmt: skip
"""What a schedule may name."""
