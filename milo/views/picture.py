"""The parts of the live picture, each a pure function of what it shows and the width."""

from __future__ import annotations

from itertools import compress
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
    header = Text(title, style="bold", overflow="fold")
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
    """A column of the islands table and the width from which on it is drawn."""

    name: str
    justify: Literal["left", "right"]
    needed: int


_COLUMNS = (
    _Column("island", "left", 0),
    _Column("round", "right", MEDIUM),
    _Column("mutator", "left", WIDE),
    _Column("now", "left", 0),
    _Column("attempts", "left", 0),
    _Column("val %", "right", 0),
    _Column("last verdict", "left", MEDIUM),
    _Column("stall", "right", 0),
)


def draw_islands(rows: tuple[IslandRow, ...], patience: int, width: int) -> Table:
    """One row per island; a narrow terminal loses the mutator, then round and verdict."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    shown = [column.needed <= width for column in _COLUMNS]
    for column in compress(_COLUMNS, shown):
        table.add_column(column.name, justify=column.justify, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*compress(_cells(row, patience, width), shown))
    return table


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
    return (
        Text(text.shorten(state.island, 14), style="bold"),
        Text(str(state.round + 1)),
        Text(text.shorten(state.mutator, 14)),
        Text(_now(row)),
        Text(_attempts(row.work, 8 if width >= WIDE else 5), style="cyan"),
        Text(text.percent(state.best_validation) if state.best_validation else text.DASH),
        _verdict(row.verdict, 30 if width >= WIDE else 18),
        Text(f"{state.stall}/{patience}", style="red" if stalled else ""),
    )


def _now(row: IslandRow) -> str:
    if row.state.closed:
        return f"closed: {text.shorten(row.state.closed, 20)}"
    if row.work is None:
        return str(Doing.WAITING)
    parent = row.work.parent or _parents(row)
    lineage = f"{parent} → {row.work.candidate}" if parent else row.work.candidate
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
