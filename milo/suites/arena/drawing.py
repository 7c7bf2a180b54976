"""A construction over the one it started from, as an SVG picture."""

from __future__ import annotations

import numpy as np

from milo.suites.arena.problems.problem import Array, Problem

SIDE, MARGIN = 640.0, 20.0
OLD, NEW = "#b8b8b8", "#1f6fb4"


def drawing(problem: Problem, start: Array | None, construction: Array) -> str:
    """Functions as steps, circles as circles, points as dots; the start in grey underneath."""
    layers = [(start, OLD)] if start is not None else []
    layers.append((construction, NEW))
    body = "".join(_layer(problem, array, colour) for array, colour in layers)
    size = SIDE + 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size:g} {size:g}">'
        f"<title>{problem.title}</title>{body}</svg>\n"
    )


def _layer(problem: Problem, array: Array, colour: str) -> str:
    if problem.field == "circles":
        return "".join(_circle(x, y, r, colour) for x, y, r in _fitted(array, array[:, 2]))
    if array.ndim == 2:
        dots = np.column_stack((array[:, :2], np.full(len(array), 0.006)))
        return "".join(_circle(x, y, 0.006, colour) for x, y, _ in _fitted(dots, dots[:, 2]))
    return _steps(array, colour)


def _fitted(array: Array, radius: Array) -> Array:
    """Coordinates moved and scaled into the unit square."""
    place = array[:, :2]
    low = (place - radius[:, None]).min(axis=0)
    extent = float(((place + radius[:, None]).max(axis=0) - low).max())
    return np.column_stack(((place - low) / extent, array[:, 2:] / extent))


def _circle(x: float, y: float, r: float, colour: str) -> str:
    cx, cy = MARGIN + SIDE * x, MARGIN + SIDE * (1 - y)
    return f'<circle cx="{cx:.2f}" cy="{cy:.2f}" r="{SIDE * r:.2f}" fill="none" stroke="{colour}"/>'


def _steps(values: Array, colour: str) -> str:
    """A step function over the unit interval, scaled to its own mean (objectives ignore scale)."""
    low = min(0.0, float(values.min()))
    span = max(float(values.max()) - low, 1e-300)
    x = np.repeat(np.linspace(0, 1, len(values) + 1), 2)[1:-1]
    y = np.repeat((values - low) / span, 2)
    points = " ".join(
        f"{MARGIN + SIDE * a:.2f},{MARGIN + SIDE * (1 - b):.2f}" for a, b in zip(x, y, strict=True)
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}"/>'
