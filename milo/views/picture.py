"""The parts of the live picture, each a pure function of what it shows and the width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from milo.core.events import CandidateJudged, CandidateProposed, Consulted, Verdict
from milo.core.topology import IslandState
from milo.views import text
from milo.views.lines import consultation_words
from milo.views.view import Doing, Progress, Work, shares_used, time_left

WIDE = 96
MEDIUM = 76
VERDICT_STYLES = {
    Verdict.ADMITTED: "green",
    Verdict.REJECTED: "yellow",
    Verdict.INVALID: "red",
    Verdict.SEED: "cyan",
}


class IslandRow(NamedTuple):
    """What one row is drawn from; None where nothing is known yet. `left` are the seconds that
    its work should still take."""

    state: IslandState
    work: Work | None
    newest: CandidateProposed | None
    verdict: CandidateJudged | None
    left: float | None = None


def draw_header(title: str, progress: Progress, rounds: float) -> Text:
    """Title, elapsed time, time left by the tightest limit, slots and queue."""
    left = time_left(progress, rounds)
    about = f"about {text.rough(left.seconds)} left ({left.limit})" if left else "time left unknown"
    header = Text(text.one_line(title), style="bold", overflow="fold")
    header.append(f"  {text.clock(progress.seconds)} elapsed, {about}", style="not bold")
    known = progress.slots_total > 0
    slots = f"  slots {progress.slots_busy}/{progress.slots_total} busy" if known else "  starting"
    header.append(slots, style="not bold cyan")
    if progress.queued:
        header.append(f", {progress.queued} queued", style="not bold dim")
    return header


def draw_limits(progress: Progress, rounds: float, width: int) -> Text:
    """What is spent, each limit with its bar; spending without a limit is plain."""
    cells = 8 if width >= WIDE else 5
    shares = shares_used(progress, rounds)
    parts = []
    for name, figure in _figures(progress, rounds).items():
        drawn = f" {text.bar(shares[name], 1, cells)}" if name in shares else ""
        parts.append(f"{name}{drawn} {figure}")
    return Text("   ".join(parts), style="dim", overflow="fold")


def _figures(progress: Progress, rounds: float) -> dict[str, str]:
    budget, spent = progress.budget, progress.spent
    figures = {
        "attempts": _of(str(spent.attempts), budget.attempts),
        "tokens": _of(text.count(spent.tokens), budget.tokens and text.count(budget.tokens)),
    }
    if budget.dollars is not None or spent.dollars or not progress.is_priced:
        limit = text.dollars(budget.dollars) if budget.dollars is not None else None
        figures["dollars"] = _of(_dollars(progress), limit)
    if budget.hours is not None:
        figures["time"] = _of(text.clock(progress.seconds), text.clock(budget.hours * 3600))
    if budget.rounds is not None:
        figures["rounds"] = _of(f"{rounds:.1f}", budget.rounds)
    return figures


def _dollars(progress: Progress) -> str:
    """What was spent; where a price is unknown, that, and what is known beside."""
    if progress.is_priced:
        return text.dollars(progress.spent.dollars)
    known = progress.spent.dollars
    return f"unknown (at least {text.dollars(known)})" if known else "unknown"


def _of(amount: str, limit: object) -> str:
    return f"{amount}/{limit}" if limit else amount


class _Column(NamedTuple):
    """A column of the islands table.

    `rank` orders who leaves first where there is no room (the highest); `least` is the width to
    which a column may shrink, 0 where it may not.
    """

    name: str
    justify: Literal["left", "right"]
    rank: int
    least: int = 0


_GAP = 2
_COLUMNS = (
    _Column("island", "left", 0),
    _Column("round", "right", 5),
    _Column("mutator", "left", 7),
    _Column("now", "left", 1, least=16),
    _Column("attempts", "left", 2),
    _Column("left", "right", 4),
    _Column("val %", "right", 1),
    _Column("stall", "right", 3),
    _Column("last verdict", "left", 6, least=18),
)
_UNTITLED = ("mutator", "last verdict")
"""Columns whose cells need no name in front of them on a line of their own."""


def draw_islands(rows: tuple[IslandRow, ...], patience: int, width: int) -> Text:
    """A line per island; what a narrow terminal has no column for is told on a second one."""
    cells = [_cells(row, patience, width) for row in rows]
    lengths = [[cell_len(row[i].plain) for row in cells] for i in range(len(_COLUMNS))]
    widths = _widths(lengths, width)
    head = [Text(column.name, style="bold") for column in _COLUMNS]
    lines = [_line(head, widths), Text("─" * width, style="dim")]
    for row in cells:
        lines.append(_line(row, widths))
        lines += _more(row, widths, width)
    return Text("\n", no_wrap=True, overflow="crop").join(lines)


def _line(cells: Sequence[Text], widths: Mapping[int, int]) -> Text:
    shown = []
    for place, size in widths.items():
        cell = cells[place].copy()
        cell.truncate(size, overflow="ellipsis")
        cell.align(_COLUMNS[place].justify, size)
        shown.append(cell)
    return Text(" " * _GAP).join(shown)


def _more(cells: Sequence[Text], widths: Mapping[int, int], width: int) -> list[Text]:
    """What has no column, in words on as many lines as that takes."""
    lines: list[Text] = []
    for place, column in enumerate(_COLUMNS):
        if place in widths or cells[place].plain in ("", text.DASH):
            continue
        part = cells[place].copy()
        if column.name not in _UNTITLED:
            part = Text(f"{column.name} ") + part
        part.truncate(max(1, width - 2), overflow="ellipsis")
        if lines and cell_len(lines[-1].plain) + 2 + cell_len(part.plain) <= width:
            lines[-1] = lines[-1] + Text(", ") + part
        else:
            lines.append(Text("  ") + part)
    for line in lines:
        line.stylize("dim")
    return lines


def _widths(lengths: list[list[int]], width: int) -> dict[int, int]:
    """The width of each column that is shown, by its place."""
    natural = [max(len(c.name), *of) for c, of in zip(_COLUMNS, lengths, strict=True)]
    least = [min(n, c.least or n) for c, n in zip(_COLUMNS, natural, strict=True)]
    places = list(range(len(_COLUMNS)))
    while len(places) > 1 and sum(least[p] + _GAP for p in places) > width + _GAP:
        places.remove(max(places, key=lambda place: _COLUMNS[place].rank))
    room = width + _GAP - sum(least[p] + _GAP for p in places)
    widths = {}
    for place in places:
        widths[place] = min(natural[place], least[place] + max(0, room))
        room -= widths[place] - least[place]
    return widths


def draw_work(work: Work, width: int) -> Text:
    """The run's own work, such as the test of the winner."""
    label = f"{work.doing} {work.candidate}".strip()
    return Text(f"{label}  {_attempts(work, 20 if width >= MEDIUM else 10)}", style="bold cyan")


def draw_note(consulted: Consulted, width: int) -> Text:
    """The last word of the orchestrator, on two lines at most."""
    return Text(text.shorten(consultation_words(consulted), two_lines(width)), style="magenta")


def draw_trouble(words: str, width: int) -> Text:
    """What the run waits out, on two lines at most."""
    return Text(text.shorten(f"waiting: {words}", two_lines(width)), style="yellow")


def two_lines(width: int) -> int:
    """Characters that two lines hold when they are wrapped between words."""
    return 2 * width - width // 6


def _cells(row: IslandRow, patience: int, width: int) -> tuple[Text, ...]:
    state = row.state
    stalled = state.stall >= patience
    cells = 8 if width >= WIDE else 5
    return (
        Text(text.shorten(state.island, 14), style="bold"),
        Text(str(max(0, state.round))),
        Text(text.shorten(state.mutator, 14)),
        Text(_now(row)),
        Text(_attempts(None if state.closed else row.work, cells), style="cyan"),
        Text(text.DASH if row.left is None or state.closed else _soon(row.left)),
        Text(text.percent(state.best_validation if state.round >= 0 else None)),
        Text(f"{state.stall}/{patience}", style="red" if stalled else ""),
        _verdict(row.verdict, width),
    )


def _now(row: IslandRow) -> str:
    if row.state.closed:
        return f"closed: {text.shorten(row.state.closed, 20)}"
    if row.work is None:
        return str(Doing.WAITING)
    parent = row.work.parent or _parents(row)
    lineage = " → ".join(name for name in (parent, row.work.candidate) if name)
    # The lineage first: where there is no room, the words are cut.
    return f"{lineage}: {row.work.doing}" if lineage else row.work.doing


def _soon(seconds: float) -> str:
    """A short time left in seconds, a longer one no finer than it is known."""
    return f"{max(1, round(seconds))} s" if seconds < 60 else text.rough(seconds)


def _parents(row: IslandRow) -> str:
    """Both parents of a graft, where the newest candidate is the one at work."""
    if row.work and row.newest and row.newest.candidate == row.work.candidate:
        return "+".join(row.newest.parents)
    return ""


def _attempts(work: Work | None, cells: int) -> str:
    if work is None or work.wanted <= 0:
        return text.DASH
    return f"{text.bar(work.done, work.wanted, cells)} {work.done}/{work.wanted}"


def _verdict(judged: CandidateJudged | None, width: int) -> Text:
    if judged is None:
        return Text(text.DASH)
    words = str(judged.verdict)
    if judged.verdict is Verdict.ADMITTED:
        words = f"{words} +{judged.gain:.4f}"
    elif judged.reason:
        words = f"{words}: {judged.reason}"
    line = text.shorten(f"{judged.candidate} {words}", width)
    return Text(line, style=VERDICT_STYLES[judged.verdict])
