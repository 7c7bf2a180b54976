"""The report for readers: on a terminal of any width, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from milo.views import text
from milo.views.report import Report
from milo.views.sections import Section, TableOf, sections_of

WORDS = 20
"""Characters that a column of words needs at least where its cells are longer."""
_CODE = {"+": "green", "-": "red", "@": "dim", " ": ""}
MOST_ROWS = 80
"""Rows of one table on the terminal; the written report has them all."""


def print_report(report: Report, console: Console) -> None:
    """Print the report; a narrow terminal gets fewer columns, never fewer rows."""
    console.print()
    console.print(
        Text(text.one_line(report.headline), style="bold green" if _is_success(report) else "bold")
    )
    console.print(Text(text.one_line(_facts(report)), style="dim"))
    print_sections(sections_of(report), console)


def print_sections(sections: Iterable[Section], console: Console) -> None:
    """Print sections one below the other."""
    for section in sections:
        console.print()
        style = "bold yellow" if section.is_warning else "bold"
        console.print(Text(text.one_line(section.title), style=style))
        _print_section(section, console)


def _print_section(section: Section, console: Console) -> None:
    for line in section.lines:
        console.print(_hanging(line, console.width))
    if section.table is not None:
        cut = len(section.table.rows) - MOST_ROWS
        if cut > 0:
            console.print(Text(f"({cut} earlier rows are in the written report)", style="dim"))
        console.print(_rich_table(section.table, console.width))
    for line in section.code:
        code = "".join(c for c in line.expandtabs() if c.isprintable())
        console.print(Text(f"  {code}", style=_CODE.get(line[:1], "cyan")), soft_wrap=True)


def _hanging(line: str, width: int) -> Padding:
    """A line whose continuation keeps the indentation of its beginning."""
    body = line.lstrip(" ")
    return Padding(
        Text(text.one_line(body)), (0, 0, 0, min(len(line) - len(body), width // 4)), expand=False
    )


def _rich_table(table: TableOf, width: int) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    shown = _fitting(table, width)
    for place in shown:
        column = table.columns[place]
        drawn.add_column(
            column.name,
            justify="right" if column.number else "left",
            overflow="fold",
            no_wrap=column.number,
        )
    for row in table.rows[-MOST_ROWS:]:
        drawn.add_row(*(Text(text.one_line(row[place])) for place in shown))
    return drawn


def _fitting(table: TableOf, width: int) -> list[int]:
    """The places of the columns that fit, the least needed left out first; words may wrap."""
    needs = [_need(table, place) for place in range(len(table.columns))]
    places = list(range(len(table.columns)))
    while sum(needs[place] + 2 for place in places) - 2 > width:
        least = max(places, key=lambda place: table.columns[place].rank)
        if table.columns[least].rank == 0:
            break
        places.remove(least)
    return places


def _need(table: TableOf, place: int) -> int:
    column = table.columns[place]
    widest = max((len(row[place]) for row in table.rows), default=0)
    return max(len(column.name), widest if column.number else min(WORDS, widest))


def report_markdown(report: Report) -> str:
    """The report as one Markdown page."""
    lines = [f"# {report.name or 'Run'}", "", f"**{_escaped(report.headline)}**", ""]
    lines += [_escaped(_facts(report)), ""]
    for section in sections_of(report):
        lines += [f"## {section.title}", "", *_markdown_section(section)]
    patches = [(step.candidate, step.patch) for step in report.path if step.patch]
    if patches:
        lines += ["## Patches", ""]
    for candidate, patch in patches:
        fence = _fence(patch)
        lines += [f"### {candidate}", "", f"{fence}diff", patch.rstrip("\n"), fence, ""]
    return "\n".join(lines)


def _markdown_section(section: Section) -> Iterator[str]:
    for line in section.lines:
        body = line.lstrip(" ")
        yield f"{'  ' if body != line else ''}- {_escaped(body)}"
    if section.lines:
        yield ""
    if section.table is not None:
        yield from markdown_table(section.table)
        yield ""
    if section.code:
        yield from ("```", *section.code, "```", "")


def markdown_table(table: TableOf) -> Iterator[str]:
    """The lines of a table in Markdown."""
    yield _row(column.name for column in table.columns)
    yield _row("---:" if column.number else "---" for column in table.columns)
    for row in table.rows:
        yield _row(_escaped(cell) for cell in row)


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(words: str) -> str:
    """Text that a mutator or a user wrote must not turn into markup or break a table."""
    line = text.one_line(words)
    for sign in "\\`*_|<>[]":
        line = line.replace(sign, f"\\{sign}")
    return line


def _fence(code: str) -> str:
    """A fence longer than any run of backticks inside."""
    fence = "```"
    while fence in code:
        fence += "`"
    return fence


def _facts(report: Report) -> str:
    parts = [f"model {report.model}"]
    if report.winner:
        parts.append(f"winner {report.winner}: {report.rule}")
    parts.append(f"ended: {report.ended}" if report.ended else "not ended")
    return "; ".join(parts)


def _is_success(report: Report) -> bool:
    """Whether the headline may be green: a searched child, better with its interval above 0."""
    judged = report.test if report.test.difference is not None else report.validation
    return report.searched and bool(report.path) and judged.is_established
