"""The leaderboard as pictures: accuracy against what it costs, and bars of the ablation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from milo.core.fitness import Interval
from milo.views.board import Board, BoardLine
from milo.views.figures.style import (
    GREY,
    INK,
    SOFT,
    as_counts,
    as_percent,
    colours,
    ordered,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SEEDS = ("D", "s", "^", "v", "P", "X")
"""Marks of the seeds, which are all grey."""
COSTS = (("tokens", "tokens per attempt"), ("latency_s", "seconds per attempt"))


def half_width(interval: Interval) -> float:
    """The ± to draw; an interval that can't be estimated has none."""
    return interval.half_width if math.isfinite(interval.half_width) else 0.0


def by_method(board: Board) -> tuple[BoardLine, ...]:
    """Seeds first, the best of them first of all; then methods, ablations by their letter."""
    seeds = [line for line in board.lines if line.is_seed]
    seeds.sort(key=lambda line: (line.name != board.baseline, -line.resolved.mean, line.name))
    found = {line.name: line for line in board.lines if not line.is_seed}
    return (*seeds, *(found[name] for name in ordered(list(found))))


def staircase(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The front of (cost, accuracy) points: what is reachable at each cost, by rising cost."""
    kept: list[tuple[float, float]] = []
    for cost, accuracy in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or accuracy > kept[-1][1]:
            kept.append((cost, accuracy))
    return kept


def draw_scatter(
    figure: Figure, board: Board, runs: Sequence[BoardLine], method_of: Mapping[str, str]
) -> None:
    """Accuracy against tokens and against seconds: a mark per row, a dot per run, the front.

    `runs` are the rows of single runs, `method_of` names the method of each.
    """
    hue = colours([line.name for line in board.lines if not line.is_seed])
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, (cost, words) in zip((left, right), COSTS, strict=True):
        _scatter(axes, board, cost, hue)
        if len(runs) > len(hue):
            for line in runs:
                x, y = getattr(line, cost), line.reward.mean
                axes.plot(x, y, ".", ms=3.5, color=hue[method_of[line.name]], alpha=0.6, zorder=2)
        axes.set_xlabel(words)
        axes.margins(x=0.08)
        axes.grid(True, axis="both")
    as_counts(left)
    # Names beside the marks would lie upon each other: good harnesses cost much alike.
    figure.legend(*left.get_legend_handles_labels(), loc="outside right upper")
    as_percent(left)
    left.set_ylabel(f"PR@k on {board.split}, %")


def _scatter(axes: Axes, board: Board, cost: str, hue: Mapping[str, str]) -> None:
    points = [(getattr(line, cost), line.reward.mean) for line in board.lines]
    front = staircase(points)
    axes.step(*zip(*front, strict=True), where="post", color=SOFT, lw=0.9, ls=(0, (4, 2)), zorder=1)
    seeds = 0
    for line, (x, y) in zip(board.lines, points, strict=True):
        colour = GREY if line.is_seed else hue[line.name]
        axes.errorbar(
            x,
            y,
            yerr=half_width(line.reward),
            fmt=SEEDS[seeds % len(SEEDS)] if line.is_seed else "o",
            ms=4.5 if line.is_seed else 5.5,
            color=colour,
            elinewidth=0.9,
            capsize=2,
            zorder=3,
            label=line.name,
        )
        seeds += line.is_seed


def draw_bars(figure: Figure, board: Board) -> None:
    """PR@k and RR@k of every row with their intervals; what no search made is grey."""
    lines = by_method(board)
    hue = colours([line.name for line in lines if not line.is_seed])
    places = list(range(len(lines)))
    top = 0.0
    pair = figure.subplots(1, 2, sharey=True)
    for axes, (name, rate) in zip(pair, (("PR@k", "reward"), ("RR@k", "resolved")), strict=True):
        intervals = [getattr(line, rate) for line in lines]
        axes.bar(
            places,
            [interval.mean for interval in intervals],
            yerr=[half_width(interval) for interval in intervals],
            width=0.68,
            color=[GREY if line.is_seed else hue[line.name] for line in lines],
            error_kw={"elinewidth": 0.9, "capsize": 2.5, "ecolor": INK},
        )
        for place, interval in zip(places, intervals, strict=True):
            end = interval.mean + half_width(interval)
            top = max(top, end)
            axes.annotate(
                f"{100 * interval.mean:.1f}",
                (place, end),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=7,
            )
        axes.set_xticks(places, [line.name for line in lines], rotation=35, ha="right")
        axes.set_title(f"{name} on {board.split}, %", loc="left")
        axes.tick_params(axis="x", length=0)
    pair[0].set_ylim(0, max(0.05, top * 1.12))
    as_percent(pair[0])
