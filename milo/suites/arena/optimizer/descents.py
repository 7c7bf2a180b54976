"""Descents to a local optimum: inside a barrier, by linear programs, or down a smooth slope."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from milo.suites.arena.optimizer.interior import Curved, descend_inside
from milo.suites.arena.optimizer.landscape import Linear, Smooth
from milo.suites.arena.optimizer.search import State
from milo.suites.arena.problems.problem import Array

SMALLEST_GAIN = 1e-15
WIDEN, NARROW = 1.6, 0.4
FLOOR = 1e-7
"""Relative radius at which a linear descent ends that something else will follow."""
BARRIER_END = 1e-9
SMOOTH_STEPS = 300


class Reached(NamedTuple):
    """Where a descent came to."""

    x: Array
    value: float


def settle(
    state: State, x: Array, until: float, *, radius: float, hopeless: float = math.inf
) -> Reached:
    """The local optimum near x by the best means that the landscape has, as time allows.

    `radius` is how far the first step may go: the barrier's height, or that of a trust region. A
    descent that seems unable to come below `hopeless` is given up.
    """
    landscape = state.landscape
    if isinstance(landscape, Curved):
        return inside(state, x, until, start=radius, end=BARRIER_END, hopeless=hopeless)
    if isinstance(landscape, Linear):
        return descend(state, x, until, radius=radius, floor=FLOOR, hopeless=hopeless)
    new = smooth_descent(state, x, until, math.inf, SMOOTH_STEPS)
    return Reached(new, state.value(new))


def inside(
    state: State, x: Array, until: float, *, start: float, end: float, hopeless: float
) -> Reached:
    """The interior-point descent (`interior`), or x itself where that came out worse."""
    landscape = state.landscape
    before = Reached(x, state.value(x))
    if not isinstance(landscape, Curved):
        return before

    def going(hope: float) -> bool:
        return hope < hopeless and state.clock() < until

    found = landscape.repair(descend_inside(landscape, x, start=start, end=end, going=going))
    new = Reached(found, state.value(found))
    return new if new.value < before.value else before


def descend(
    state: State, x: Array, until: float, *, radius: float, floor: float, hopeless: float
) -> Reached:
    """Sequential linear programming with a trust region, from x; the point reached, its value.

    Ends when the radius falls below `floor` or the model promises nothing; or, after some steps,
    when the value is still above `hopeless` and a few more steps like the last won't change that.
    """
    landscape = state.landscape
    value = landscape.value(x)
    if not isinstance(landscape, Linear):
        return Reached(x, value)
    steps, recent = 0, value
    while state.clock() < until and radius > floor:
        step = landscape.step(x, radius)
        if step is None:
            radius *= NARROW
            continue
        promised = value - step.promised
        if promised < SMALLEST_GAIN:
            break
        reached = landscape.value(step.x)
        kept = value - reached
        if kept > 0.05 * promised:
            x, value = step.x, reached
        radius *= WIDEN if kept > 0.7 * promised else NARROW if kept < 0.25 * promised else 1.0
        steps += 1
        if steps % 30 == 0:
            if value - 3 * (recent - value) > hopeless:
                break
            recent = value
    return Reached(x, value)


def smooth_descent(state: State, x: Array, until: float, sharpness: float, steps: int) -> Array:
    """One L-BFGS run within the landscape's bounds, then a repair; x where nothing is smooth."""
    landscape = state.landscape
    if not isinstance(landscape, Smooth):
        return x
    shape = x.shape

    def both(flat: Array) -> tuple[float, Array]:
        value, gradient = landscape.smoothed(flat.reshape(shape), sharpness)
        return value, gradient.ravel()

    def watch(_: Array) -> None:
        if state.clock() > until:
            raise StopIteration

    bounds = [(landscape.lower, landscape.upper)] * x.size
    options = {"maxiter": steps, "maxcor": 20, "ftol": 1e-15, "gtol": 1e-12}
    found = minimize(
        both, x.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=watch
    )
    return landscape.repair(np.asarray(found.x).reshape(shape))
