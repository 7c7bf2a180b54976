"""A leaderboard as files for a paper: CSV with plain numbers, Markdown and LaTeX with ±."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from milo.core.fitness import Interval
from milo.views import text
from milo.views.rendering import markdown_table
from milo.views.sections import Column, TableOf


@dataclass(frozen=True, kw_only=True, slots=True)
class BoardLine:
    """One row: a method over its runs, or a seed (`runs` is 0) as a baseline.

    Rates are shares with their 95 % intervals; tokens, seconds and dollars are means per attempt,
    `searched_*` means per run. None where a figure is unknown or makes no sense.
    """

    name: str
    runs: int
    k: int
    reward: Interval
    resolved: Interval
    pass_at_k: float
    pass_hat_k: float
    coverage: float
    tokens: float
    latency_s: float
    dollars: float | None = None
    searched_attempts: float | None = None
    searched_tokens: float | None = None
    searched_dollars: float | None = None
    searched_hours: float | None = None

    @property
    def is_seed(self) -> bool:
        """Whether no search made it."""
        return self.runs == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Board:
    """Rows from the best down, over the tasks of one split; `notes` are what to doubt."""

    split: str
    tasks: int
    lines: tuple[BoardLine, ...]
    baseline: str = ""
    notes: tuple[str, ...] = ()


CSV_COLUMNS = (
    "name",
    "kind",
    "runs",
    "k",
    "pr",
    "pr_half_width",
    "rr",
    "rr_half_width",
    "pass_at_k",
    "pass_hat_k",
    "coverage",
    "tokens_per_attempt",
    "seconds_per_attempt",
    "dollars_per_attempt",
    "search_attempts",
    "search_tokens",
    "search_dollars",
    "search_hours",
)


def board_csv(board: Board) -> str:
    """Plain numbers, rates as shares; an unknown or infinite figure is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for line in board.lines:
        writer.writerow([_cell(value) for value in _values(line)])
    return out.getvalue()


def _values(line: BoardLine) -> tuple[object, ...]:
    return (
        line.name,
        "seed" if line.is_seed else "method",
        line.runs,
        line.k,
        line.reward.mean,
        line.reward.half_width,
        line.resolved.mean,
        line.resolved.half_width,
        line.pass_at_k,
        line.pass_hat_k,
        line.coverage,
        line.tokens,
        line.latency_s,
        line.dollars,
        line.searched_attempts,
        line.searched_tokens,
        line.searched_dollars,
        line.searched_hours,
    )


def _cell(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else ""
    return "" if value is None else value


def board_markdown(board: Board) -> str:
    """A Markdown page: what it rests on, the table, the notes."""
    lines = [f"# Leaderboard: {_basis(board)}", "", *markdown_table(_table(board)), ""]
    lines += [f"- {note}" for note in board.notes]
    return "\n".join(lines).rstrip("\n") + "\n"


def _basis(board: Board) -> str:
    return f"{board.split} split, {text.plural(board.tasks, 'task')}"


def _table(board: Board) -> TableOf:
    return TableOf(
        columns=tuple(Column(name, number=place > 0) for place, name in enumerate(_head())),
        rows=tuple(_words(line, board.baseline) for line in board.lines),
    )


def _head() -> tuple[str, ...]:
    return (
        "harness",
        "runs",
        "k",
        "PR@k %",
        "RR@k %",
        "pass@k %",
        "tokens",
        "seconds",
        "dollars",
        "search attempts",
        "search tokens",
    )


def _words(line: BoardLine, baseline: str) -> tuple[str, ...]:
    name = f"{line.name} (baseline)" if line.name == baseline else line.name
    return (
        name,
        str(line.runs) if line.runs else text.DASH,
        str(line.k),
        text.accuracy(line.reward),
        text.accuracy(line.resolved),
        text.percent(line.pass_at_k),
        f"{line.tokens:,.0f}",
        f"{line.latency_s:.2f}",
        text.DASH if line.dollars is None else f"{line.dollars:.4f}",
        text.count(line.searched_attempts),
        text.count(line.searched_tokens),
    )


def board_latex(board: Board) -> str:
    """A `tabular` in the style of booktabs, to be `\\input` into a table."""
    head, rows = _head(), [_words(line, board.baseline) for line in board.lines]
    return "\n".join(
        [
            f"% {_latex(_basis(board))}; needs \\usepackage{{booktabs}}",
            f"\\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
            "\\toprule",
            _latex_row(head),
            "\\midrule",
            *(_latex_row(row) for row in rows),
            "\\bottomrule",
            "\\end{tabular}",
            *(f"% {_latex(note)}" for note in board.notes),
            "",
        ]
    )


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(_latex(cell) for cell in cells) + " \\\\"


_SPECIAL = {
    "\\": "\\textbackslash{}",
    "{": "\\{",
    "}": "\\}",
    "&": "\\&",
    "%": "\\%",
    "$": "\\$",
    "#": "\\#",
    "_": "\\_",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "±": "$\\pm$",
    "–": "--",
    "×": "$\\times$",
    "−": "$-$",
}


def _latex(words: str) -> str:
    """The words with every sign that LaTeX would take for a command made harmless."""
    return "".join(_SPECIAL.get(sign, sign) for sign in text.one_line(words))
