"""A construction over the one it started from, as an SVG picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np

from milo.suites.arena.problems.problem import Array, Problem

SIDE, MARGIN, CAPTION = 640.0, 20.0, 28.0
OLD, NEW = "#9a9a9a", "#1f6fb4"
DOT = 0.006
"""Radius of a point, in units of the picture's side."""
SCALE_FREE = ("first", "second", "third")
"""Beginnings of the names of problems that do not mind a factor: drawn at mean one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """The part of the plane that is shown, and the units of the picture per unit in x and y."""

    low: Array
    scale: Array

    def place(self, points: Array) -> Array:
        """Coordinates in the picture; shape (n, 2)."""
        moved = (points - self.low) * self.scale
        return np.column_stack((MARGIN + moved[:, 0], MARGIN + SIDE - moved[:, 1]))


def drawing(problem: Problem, start: Array | None, construction: Array) -> str:
    """Functions as steps, circles as circles, points as dots; the start in grey underneath, in
    the same frame."""
    named = [(start, OLD, "start"), (construction, NEW, "best")]
    layers = [(_shape(problem, one), colour, who) for one, colour, who in named if one is not None]
    steps = construction.ndim == 1
    frame = _frame([shape for shape, _, _ in layers], square=not steps)
    layer = _steps if steps else _circles
    body = "".join(layer(frame, shape, colour) for shape, colour, _ in layers)
    words = [
        f'<tspan fill="{colour}">{who} {problem.fast(one)!r}  </tspan>'
        for one, colour, who in named
        if one is not None
    ]
    width, height = SIDE + 2 * MARGIN, SIDE + 2 * MARGIN + CAPTION
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">'
        f"<title>{escape(problem.title)}</title>{body}"
        f'<text x="{MARGIN:g}" y="{height - MARGIN:g}" font-family="sans-serif" '
        f'font-size="14">{"".join(words)}</text></svg>\n'
    )


def _shape(problem: Problem, array: Array) -> Array:
    """Rows (x, y, r): the corners of a step function, circles, or points (r is zero but for
    circles). What has no scale or place of its own is given one."""
    if array.ndim == 1:
        free = problem.name.startswith(SCALE_FREE)
        x = np.repeat(np.linspace(0, 1, len(array) + 1), 2)[1:-1]
        y = np.repeat(array / array.mean() if free else array, 2)
        return np.column_stack((x, y, np.zeros(len(x))))
    if problem.field == "circles":
        low = (array[:, :2] - array[:, 2:]).min(axis=0)
        return array - np.append(low, 0.0) if problem.name == "circles-rectangle" else array
    if problem.name == "heilbronn-triangles":
        return np.column_stack((array, np.zeros(len(array))))
    low, high = array[:, :2].min(axis=0), array[:, :2].max(axis=0)
    return np.column_stack(((array[:, :2] - low) / (high - low).max(), np.zeros(len(array))))


def _frame(shapes: Sequence[Array], *, square: bool) -> Frame:
    """Around all shapes; the same unit in x and y for what lies in the plane."""
    low = np.min([(s[:, :2] - s[:, 2:]).min(axis=0) for s in shapes], axis=0)
    high = np.max([(s[:, :2] + s[:, 2:]).max(axis=0) for s in shapes], axis=0)
    if not square:
        low[1] = min(low[1], 0.0)
    extent = np.maximum(high - low, 1e-300)
    return Frame(low=low, scale=SIDE / (np.full(2, extent.max()) if square else extent))


def _steps(frame: Frame, shape: Array, colour: str) -> str:
    points = " ".join(f"{x:.2f},{y:.2f}" for x, y in frame.place(shape[:, :2]))
    return f'<polyline points="{points}" fill="none" stroke="{colour}"/>'


def _circles(frame: Frame, shape: Array, colour: str) -> str:
    radii = np.where(shape[:, 2] > 0, shape[:, 2] * frame.scale[0], DOT * SIDE)
    return "".join(
        f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{r:.2f}" fill="none" stroke="{colour}"/>'
        for (x, y), r in zip(frame.place(shape[:, :2]), radii, strict=True)
    )
