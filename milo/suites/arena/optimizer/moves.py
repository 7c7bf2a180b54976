"""The moves: each works on a state for at most some seconds and leaves its best point in `x`.

A move that the landscape has no use for returns at once. Radii and sizes are relative to the
landscape's own scale.
"""

from __future__ import annotations

import math
from types import MappingProxyType

import numpy as np
from scipy.optimize import minimize

from milo.suites.arena.optimizer.landscape import Linear, Scaled, Smooth
from milo.suites.arena.optimizer.search import State
from milo.suites.arena.problems.problem import Array

SMALLEST_GAIN = 1e-15
WIDEN, NARROW = 1.6, 0.4


def descend(
    state: State, x: Array, deadline: float, *, radius: float, floor: float, hopeless: float
) -> tuple[Array, float]:
    """Sequential linear programming with a trust region, from x; the point reached, its value.

    Ends when the radius falls below `floor` or the model promises nothing; or, after some steps,
    when the value is still above `hopeless` and a few more steps like the last won't change that.
    """
    landscape = state.landscape
    value = landscape.value(x)
    if not isinstance(landscape, Linear):
        return x, value
    steps, recent = 0, value
    while state.clock() < deadline and radius > floor:
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
    return x, value


def linearise(state: State, seconds: float, radius: float = 0.1, floor: float = 1e-9) -> None:
    """Linearised minimax steps from the present point."""
    until = state.clock() + seconds
    state.x, _ = descend(state, state.x, until, radius=radius, floor=floor, hopeless=math.inf)
    state.offer(state.x)


def hop(
    state: State,
    seconds: float,
    size: float = 0.15,
    radius: float = 0.05,
    warmth: float = 1e-4,
    inner: str = "linear",
) -> None:
    """Basin hopping: kick, descend, keep what is better (or barely worse, by `warmth`)."""
    until = state.clock() + seconds
    x, value = state.x, state.value(state.x)
    home, least = x, value
    while state.clock() < until:
        kicked = state.landscape.kicked(x, state.rng, size * state.rng.random())
        if inner == "linear" and isinstance(state.landscape, Linear):
            new, reached = descend(
                state, kicked, until, radius=radius, floor=1e-7, hopeless=least + abs(least) * 1e-4
            )
        else:
            new = _smooth_descent(state, kicked, until, math.inf, 200)
            reached = state.value(new)
        if reached < value + abs(least) * warmth * state.rng.exponential():
            x, value = new, reached
        if reached < least:
            home, least = new, reached
            state.offer(new)
    state.x = home


def restart(
    state: State, seconds: float, radius: float = 0.1, short: int = 20, long: int = 60
) -> None:
    """Independent starts, each descended; the best of them replaces x where it is better.

    Functions are started on random grids between `short` and `long` steps.
    """
    until = state.clock() + seconds
    least = state.value(state.x)
    while state.clock() < until:
        like = state.x
        if isinstance(state.landscape, Scaled):
            like = np.zeros(int(state.rng.integers(short, max(short, long) + 1)))
        start = state.landscape.random(state.rng, like)
        bound = least + abs(least) * 2e-3
        if isinstance(state.landscape, Linear):
            new, value = descend(state, start, until, radius=radius, floor=1e-7, hopeless=bound)
        else:
            new = _smooth_descent(state, start, until, math.inf, 300)
            value = state.value(new)
        if value < least:
            state.x, least = new, value
            state.offer(new)


def refine(state: State, seconds: float, factor: int = 2, size: float = 0.05) -> None:
    """Multi-resolution: put a function on a grid `factor` times as fine, shake it, descend.

    Without the shaking the finer function is a stationary point of every linear model.
    """
    if not isinstance(state.landscape, Scaled) or len(state.x) * factor > state.most:
        return
    until = state.clock() + seconds
    fine = state.landscape.resized(state.x, len(state.x) * factor)
    shaken = state.landscape.repair(fine * (1 + size * state.rng.normal(size=len(fine))))
    before = state.value(state.x)
    new, value = descend(
        state, shaken, until, radius=max(size, 1e-3), floor=1e-8, hopeless=math.inf
    )
    if value < before:
        state.x = new
        state.offer(new)


def smooth(
    state: State, seconds: float, start: float = 1e3, end: float = 1e6, steps: int = 300
) -> None:
    """L-BFGS on a smoothed maximum that is sharpened from `start` to `end`."""
    if not isinstance(state.landscape, Smooth):
        return
    until = state.clock() + seconds
    sharpness, x = start, state.x
    while state.clock() < until and sharpness <= end:
        x = _smooth_descent(state, x, until, sharpness, steps)
        state.offer(x)
        if state.value(x) < state.value(state.x):
            state.x = x
        sharpness *= 3


def _smooth_descent(state: State, x: Array, until: float, sharpness: float, steps: int) -> Array:
    """One L-BFGS run within the landscape's bounds, then a repair."""
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
    return landscape.repair(found.x.reshape(shape))


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
            linearise, hop, restart, refine, smooth, subgradient, coordinate, anneal, home,
        )
    }
)  # fmt: skip
"""What a schedule may name."""
