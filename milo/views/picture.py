"""The parts of the live picture, each a pure function of what it shows and the width."""

from __future__ import annotations

from typing import Literal, NamedTuple

from rich import box
from rich.table import Table
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
    """What one row is drawn from; None where nothing is known yet."""

    state: IslandState
    work: Work | None
    newest: CandidateProposed | None
    verdict: CandidateJudged | None


def draw_header(title: str, progress: Progress, rounds: float) -> Text:
    """Title, elapsed time, time left by the tightest limit, slots and queue."""
    left = time_left(progress, rounds)
    about = f"about {text.rough(left.seconds)} left ({left.limit})" if left else "time left unknown"
    header = Text(text.one_line(title), style="bold", overflow="fold")
    header.append(f"  {text.clock(progress.seconds)} elapsed, {about}", style="not bold")
    slots = f"  slots {progress.slots_busy}/{progress.slots_total} busy"
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
    if budget.dollars is not None or spent.dollars:
        limit = text.dollars(budget.dollars) if budget.dollars is not None else None
        figures["dollars"] = _of(text.dollars(spent.dollars), limit)
    if budget.hours is not None:
        figures["time"] = _of(text.clock(progress.seconds), text.clock(budget.hours * 3600))
    if budget.rounds is not None:
        figures["rounds"] = _of(f"{rounds:.1f}", budget.rounds)
    return figures


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


_GAP = 2  # one blank of padding, one of the box
_COLUMNS = (
    _Column("island", "left", 0),
    _Column("round", "right", 4),
    _Column("mutator", "left", 6),
    _Column("now", "left", 1, least=16),
    _Column("attempts", "left", 2),
    _Column("val %", "right", 1),
    _Column("stall", "right", 3),
    _Column("last verdict", "left", 5, least=18),
)


def draw_islands(rows: tuple[IslandRow, ...], patience: int, width: int) -> Table:
    """One row per island; a narrow terminal loses columns by their rank, never a row."""
    cells = [_cells(row, patience, width) for row in rows]
    widths = _widths([[len(row[i]) for row in cells] for i in range(len(_COLUMNS))], width)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for place, size in widths.items():
        column = _COLUMNS[place]
        table.add_column(
            column.name, justify=column.justify, width=size, no_wrap=True, overflow="ellipsis"
        )
    for row in cells:
        table.add_row(*(row[place] for place in widths))
    return table


def _widths(lengths: list[list[int]], width: int) -> dict[int, int]:
    """The width of each column that is shown, by its place."""
    natural = [max(len(c.name), *of) for c, of in zip(_COLUMNS, lengths, strict=True)]
    least = [min(n, c.least or n) for c, n in zip(_COLUMNS, natural, strict=True)]
    places = list(range(len(_COLUMNS)))
    while len(places) > 1 and sum(least[p] + _GAP for p in places) > width:
        places.remove(max(places, key=lambda place: _COLUMNS[place].rank))
    room = width - sum(least[p] + _GAP for p in places)
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
    return Text(text.shorten(consultation_words(consulted), 2 * width - 2), style="magenta")


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
    return f"{row.work.doing} {lineage}".strip()


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
