"""Stall, diagnose, intervene: an island per lane over time, its stall count rising towards the
patience, what the orchestrator found, and where its moves took effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from milo.core.moves import Curriculum, Graft, Move, Reassign, Speciate
from milo.views.figures.style import HUES, INK, LIGHT
from milo.views.history import History, Intervention, Step, Strip, letter
from milo.views.text import clock, percent, plural, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LANE = 1.0
ROOM = 0.72
"""The part of a lane that a full stall count fills."""
STALLED = "#b3333d"
BADGE = 0.16
"""How high above its lane's floor a move stands."""
MOST_NOTES = 14
LEGEND = (
    "height: rounds without progress, red where stalled; | an admitted child; "
    "○ the orchestrator answers;",
    "R reassign, G graft (arrow from the donor), S speciate (arrow to the new one), C curriculum",
)


def stall_steps(strip: Strip, end: float) -> tuple[list[float], list[float]]:
    """The stall count over time as steps: seconds and counts, to the end or the closing."""
    seconds, counts = [strip.founded], [0.0]
    for stand in strip.stands:
        seconds.append(stand.seconds)
        counts.append(float(stand.stall))
    seconds.append(end if strip.closed is None else strip.closed)
    counts.append(counts[-1])
    return seconds, counts


def draw_interventions(figure: Figure, history: History) -> None:
    """A lane per island, the oldest on top; the numbered answers are told below."""
    lanes = {strip.island: -LANE * place for place, strip in enumerate(history.strips)}
    notes = history.interventions[-MOST_NOTES:]
    heights = [LANE * max(2, len(lanes)), 0.3 * (len(notes) + len(LEGEND) + 2)]
    axes, words = figure.subplots(2, 1, height_ratios=heights)
    end = max(1.0, history.seconds)
    for place, strip in enumerate(history.strips):
        _lane(axes, strip, lanes[strip.island], history, HUES[place % len(HUES)])
    for one in history.interventions:
        _answer(axes, one, lanes)
    for step in history.steps:
        _arrow(axes, step, lanes)
    for (island, seconds), letters in badges(history.steps).items():
        if island in lanes:
            _badge(axes, letters, seconds, lanes[island])
    _axes(axes, history, lanes, end)
    _notes(words, notes, len(history.interventions) - len(notes))


def size_of(history: History) -> tuple[float, float]:
    """Inches that the figure needs."""
    notes = min(MOST_NOTES, len(history.interventions))
    return 6.9, 0.6 + 0.55 * max(2, len(history.strips)) + 0.165 * (notes + len(LEGEND) + 2)


def _lane(axes: Axes, strip: Strip, floor: float, history: History, colour: str) -> None:
    seconds, counts = stall_steps(strip, history.seconds)
    most = max(history.patience, *(int(count) for count in counts), 1)
    heights = [floor + ROOM * count / most for count in counts]
    axes.fill_between(seconds, floor, heights, step="post", color=colour, alpha=0.28, lw=0)
    axes.step(seconds, heights, where="post", color=colour, lw=1.0)
    full = [count >= history.patience for count in counts]
    for place, is_full in enumerate(full[:-1]):
        if is_full:
            span = seconds[place : place + 2]
            axes.fill_between(span, floor, heights[place], color=STALLED, alpha=0.35, lw=0)
    axes.plot(strip.admitted, [floor - 0.06] * len(strip.admitted), "|", ms=4, color=colour)


def _answer(axes: Axes, one: Intervention, lanes: Mapping[str, float]) -> None:
    if one.island not in lanes:
        return
    y = lanes[one.island] + ROOM + 0.08
    axes.plot(one.seconds, y, "o", ms=8.5, mfc="white", mec=INK, mew=0.8, zorder=5)
    axes.annotate(
        str(one.number), (one.seconds, y), ha="center", va="center", fontsize=5.8, zorder=6
    )


def badges(steps: Sequence[Step]) -> dict[tuple[str, float], str]:
    """The letters of the moves that took effect on an island at a moment: two at most."""
    found: dict[tuple[str, float], str] = {}
    for step in steps:
        where = (step.island, round(step.seconds, 1))
        found[where] = found.get(where, "") + letter(step.move)
    return found


def _arrow(axes: Axes, step: Step, lanes: Mapping[str, float]) -> None:
    """A graft comes from its donor; a speciated island goes out from its source."""
    if step.origin not in lanes or step.island not in lanes:
        return
    here, there = lanes[step.island] + BADGE, lanes[step.origin] + BADGE
    start, end = (there, here) if letter(step.move) == "G" else (here, there)
    axes.annotate(
        "",
        (step.seconds, end),
        xytext=(step.seconds, start),
        arrowprops={"arrowstyle": "-|>", "lw": 0.9, "ls": "--", "color": INK},
        zorder=4,
    )


def _badge(axes: Axes, letters: str, seconds: float, floor: float) -> None:
    axes.annotate(
        letters,
        (seconds, floor + BADGE),
        ha="center",
        va="center",
        fontsize=6.5,
        fontweight="bold",
        color="white",
        bbox={"boxstyle": "round,pad=0.22", "fc": INK, "ec": "white", "lw": 0.5},
        zorder=7,
    )


def _axes(axes: Axes, history: History, lanes: Mapping[str, float], end: float) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    best = {s.island: s.stands[-1].best if s.stands else None for s in history.strips}
    labels = [f"{island}\nbest {percent(best[island])} %" for island in lanes]
    axes.set_yticks([floor + ROOM / 2 for floor in lanes.values()], labels)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(False)
    for floor in lanes.values():
        axes.axhline(floor, color=LIGHT, lw=0.8, zorder=0)
    axes.set_xlim(0, end)
    axes.set_ylim(min(lanes.values(), default=0.0) - 0.15, LANE + 0.05)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: clock(seconds)))
    axes.set_xlabel("active time")


def _notes(axes: Axes, notes: Sequence[Intervention], left_out: int) -> None:
    axes.axis("off")
    older = [f"({plural(left_out, 'earlier answer')}: see the report)"] if left_out else []
    lines = [*LEGEND, "", *older]
    lines += [_note(one) for one in notes]
    axes.text(0, 1, "\n".join(lines), va="top", ha="left", fontsize=6.8, transform=axes.transAxes)


def _note(one: Intervention) -> str:
    moves = ", ".join(move_note(move) for move in one.moves) or "no move"
    return shorten(f"{one.number}  {one.island}, round {one.round}: {one.diagnosis} → {moves}", 118)


def move_note(move: Move) -> str:
    """A move in a few words, for the small print under a figure."""
    match move:
        case Reassign():
            return f"reassign to {move.mutator}"
        case Graft():
            return f"graft of {move.donor_candidate}"
        case Speciate():
            return f"speciate {move.root} to {move.new_island}"
        case Curriculum():
            return f"curriculum {move.epoch} of {plural(len(move.tasks), 'task')}"
