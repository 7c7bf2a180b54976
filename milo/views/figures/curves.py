"""Best-so-far curves: a panel per method, the other methods and the seeds repeated in grey."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from milo.views.figures.style import GREY, LIGHT, SOFT, as_counts, as_percent, colours, ordered
from milo.views.history import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3


class Line(NamedTuple):
    """Steps of a curve: where each begins, and the value from there on."""

    x: tuple[float, ...]
    y: tuple[float, ...]


def line_of(history: History) -> Line:
    """Best validation accuracy so far against attempts of target and search."""
    return Line(tuple(b.attempts for b in history.best), tuple(b.best for b in history.best))


def value_at(line: Line, x: float) -> float | None:
    """The value that a step curve has at `x`, carried forward; None before it begins."""
    place = bisect_right(line.x, x)
    return line.y[place - 1] if place else None


def mean_line(lines: Sequence[Line]) -> Line:
    """The mean of step curves, from where all have begun, each carried forward to the end."""
    whole = [line for line in lines if line.x]
    if not whole:
        return Line((), ())
    begin = max(line.x[0] for line in whole)
    places = sorted({x for line in whole for x in line.x if x >= begin})
    means = []
    for x in places:
        values = [value for line in whole if (value := value_at(line, x)) is not None]
        means.append(sum(values) / len(values))
    return Line(tuple(places), tuple(means))


def panels(methods: int) -> tuple[int, int]:
    """Rows and columns of the panels."""
    columns = min(COLUMNS, max(1, methods))
    return -(-methods // columns), columns


def draw_curves(figure: Figure, histories: Sequence[History]) -> None:
    """One panel per method: its runs thin, their mean bold; everything else in grey behind."""
    methods = ordered([history.method for history in histories])
    hue = colours(methods)
    lines = {name: [line_of(h) for h in histories if h.method == name] for name in methods}
    rows, columns = panels(len(methods))
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    flat = [axes for row in grid for axes in row]
    end = max((line.x[-1] for of in lines.values() for line in of if line.x), default=1.0)
    baseline = _baseline(histories)
    for axes, name in zip(flat, methods, strict=False):
        for other in methods:
            if other != name:
                _step(axes, mean_line(lines[other]), end, GREY, 0.9)
        if baseline is not None:
            axes.axhline(baseline, color=GREY, lw=0.9, ls=(0, (1, 1.5)))
        if len(lines[name]) > 1:
            for line in lines[name]:
                _step(axes, line, end, hue[name], 0.5)
        _step(axes, mean_line(lines[name]), end, hue[name], 1.8)
        words = f", mean of {len(lines[name])} runs" if len(lines[name]) > 1 else ""
        axes.set_title(f"{name}{words}", loc="left", color=hue[name])
    for place, axes in enumerate(flat[len(methods) :], start=len(methods)):
        axes.set_visible(False)
        flat[place - columns].tick_params(labelbottom=True)
    _label(figure, grid, flat, baseline)


def _label(figure: Figure, grid: object, flat: Sequence[Axes], baseline: float | None) -> None:
    as_counts(flat[0])
    as_percent(flat[0])
    figure.supxlabel("attempts", fontsize=8)
    figure.supylabel("best validation accuracy so far, %", fontsize=8)
    for axes in flat:
        axes.set_xlim(left=0)
        axes.spines["left"].set_color(LIGHT)
    if baseline is not None:
        flat[0].annotate(
            "best seed",
            (0.99, baseline),
            xycoords=("axes fraction", "data"),
            xytext=(0, -8),
            textcoords="offset points",
            ha="right",
            fontsize=6.5,
            color=SOFT,
        )


def _step(axes: Axes, line: Line, end: float, colour: str, width: float) -> None:
    if line.x:
        x, y = [*line.x, max(end, line.x[-1])], [*line.y, line.y[-1]]
        axes.step(x, y, where="post", color=colour, lw=width, alpha=0.75 if width < 0.8 else 1.0)


def _baseline(histories: Sequence[History]) -> float | None:
    """The best seed over all runs."""
    return max((h.baseline for h in histories if h.baseline is not None), default=None)
