"""One style for all figures: sizes in inches of a paper's columns, colours, and how files are made.

matplotlib is imported when a figure is drawn, never before: it is an extra.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from milo.core.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.35, 6.9
"""Width of one column and of both, in inches."""
INK, SOFT, GREY, LIGHT = "#1c1d1f", "#5b5e63", "#9b9b96", "#dcdcd6"
HUES = (
    "#0067a8",
    "#c2570c",
    "#1b7f5c",
    "#a3407f",
    "#6a51a3",
    "#8a6d00",
    "#b3333d",
    "#4a6b73",
)
"""The colours of the replay page: apart from each other also for most colour-blind readers."""
LETTERS = ("a", "b", "c", "d", "e", "milo")
FORMATS = ("svg", "pdf")


def style() -> Mapping[str, Any]:
    """matplotlib's settings. Text stays text in both formats, so that it can be searched."""
    return {
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
        "font.size": 8.0,
        "axes.titlesize": 8.5,
        "axes.labelsize": 8.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": SOFT,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.7,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": LIGHT,
        "grid.linewidth": 0.6,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
        "xtick.labelsize": 7.5,
        "ytick.labelsize": 7.5,
        "lines.linewidth": 1.4,
        "legend.frameon": False,
        "legend.fontsize": 7.5,
        "figure.dpi": 100.0,
        # A run may be named with a dollar sign, which is no formula.
        "text.parse_math": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "milo",
        "pdf.fonttype": 42,
    }


def need_matplotlib() -> None:
    """Raises `ConfigError` with what to install where it is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError(
            "milo report --figures",
            "matplotlib to be installed (pip install 'milo-harness[figures]')",
            "none",
        )


def save(
    folder: Path, name: str, draw: Callable[[Figure], None], size: tuple[float, float]
) -> tuple[Path, ...]:
    """Draw a figure of `size` inches and write it once in each format; the files.

    The same data gives the same bytes: no date goes in.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(dict(style())):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        paths = []
        for kind in FORMATS:
            path = folder / f"{name}.{kind}"
            undated = {"Date": None} if kind == "svg" else {"CreationDate": None}
            figure.savefig(path, format=kind, metadata=undated)
            paths.append(path)
    return tuple(paths)


def ordered(methods: Sequence[str]) -> tuple[str, ...]:
    """Ablations by their letter first, then the others by name."""
    known = {name: place for place, name in enumerate(LETTERS)}
    return tuple(sorted(set(methods), key=lambda name: (known.get(name, len(known)), name)))


def colours(methods: Sequence[str]) -> dict[str, str]:
    """A colour per method, the same in every figure of these methods."""
    return {name: HUES[i % len(HUES)] for i, name in enumerate(ordered(methods))}


def as_percent(axes: Axes) -> None:
    """Write the shares of the y axis in percent."""
    from matplotlib.ticker import FuncFormatter

    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.0f}"))


def as_counts(axes: Axes) -> None:
    """Write the large numbers of the x axis short."""
    from matplotlib.ticker import FuncFormatter

    from milo.views.text import count

    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: count(number)))
