"""Table tasks that bring the cells of one column into one form."""

from __future__ import annotations

import random
from collections.abc import Sequence

from milo.suites.deskwork.family import Draft
from milo.suites.deskwork.tables_parts import (
    Cell,
    Output,
    Table,
    delimited,
    load_csv,
    program,
    save_csv,
    table_of,
)

OUT = Output(path="clean.csv")


def clean_dates(rng: random.Random) -> Draft:
    """Dates in ISO form."""
    days = [(rng.randint(1, 28), rng.randint(1, 12)) for _ in range(8)]
    return _extended(
        table_of(rng),
        "date",
        found=[f"{day:02d}.{month:02d}.2024" for day, month in days],
        wanted=[f"2024-{month:02d}-{day:02d}" for day, month in days],
        words="with every date written as YYYY-MM-DD instead of DD.MM.YYYY",
        step="r['date'] = '-'.join(reversed(r['date'].split('.')))",
    )


def clean_answers(rng: random.Random) -> Draft:
    """Several spellings of yes and no."""
    spelt = {"yes": ("Yes", "YES", "y", "Y"), "no": ("No", "NO", "n", "N")}
    wanted = ["yes", "no", *(rng.choice(("yes", "no")) for _ in range(6))]
    return _extended(
        table_of(rng),
        "paid",
        found=[rng.choice(spelt[word]) for word in wanted],
        wanted=wanted,
        words="with paid as `yes` or `no` in every row (it is also spelt Yes, YES, y, Y, No, NO, "
        "n, N)",
        step="r['paid'] = 'yes' if r['paid'].lower().startswith('y') else 'no'",
    )


def _extended(
    table: Table, new: str, *, found: Sequence[str], wanted: Sequence[str], words: str, step: str
) -> Draft:
    """A task about a column that is put in the second column's place."""
    name, _, first, second = table.columns
    columns = (name, new, first, second)
    before, after = (
        [(row[0], cell, *row[2:]) for row, cell in zip(table.rows, cells, strict=False)]
        for cells in (found, wanted)
    )
    return _draft(table.csv, columns, (before, after), new, words=words, step=step)


def clean_unit(rng: random.Random) -> Draft:
    """Numbers without the unit that some of them carry."""
    table = table_of(rng)
    column, unit = table.columns[3], rng.choice(("kg", "pcs", "EUR"))
    bare = rng.randrange(len(table.rows))
    before = [
        (*row[:3], str(row[3]) if at == bare else f"{row[3]} {unit}")
        for at, row in enumerate(table.rows)
    ]
    return _draft(
        table.csv,
        table.columns,
        (before, table.rows),
        column,
        words=f"with only the number in the column {column}, without the unit {unit} that most "
        f"rows have",
        step=f"r[{column!r}] = r[{column!r}].split()[0]",
    )


def fill_empty(rng: random.Random) -> Draft:
    """A word in place of empty cells."""
    table = table_of(rng)
    column, word = table.columns[1], rng.choice(("unknown", "none", "open"))
    gaps = rng.sample(range(len(table.rows)), 2)
    before, after = (
        [(row[0], text if at in gaps else row[1], *row[2:]) for at, row in enumerate(table.rows)]
        for text in ("", word)
    )
    return _draft(
        table.csv,
        table.columns,
        (before, after),
        column,
        words=f"with `{word}` in every empty cell of the column {column}",
        step=f"r[{column!r}] = r[{column!r}] or {word!r}",
    )


def _draft(
    source: str,
    columns: Sequence[str],
    rows: tuple[Sequence[Sequence[Cell]], Sequence[Sequence[Cell]]],
    column: str,
    *,
    words: str,
    step: str,
) -> Draft:
    """A task to write a table with one column made clean; `rows` before and after."""
    before, after = rows
    at = list(columns).index(column)
    return Draft(
        instruction=(
            f"`{source}` has the columns {', '.join(columns)}. Write the same table to "
            f"`clean.csv`, {words}. Change nothing else."
        ),
        files={source: delimited(columns, before)},
        goals=[OUT.column(column, [row[at] for row in after]), OUT.table(columns, after)],
        solution=program(
            load_csv(source), f"for r in rows:\n    {step}", save_csv("clean.csv", columns)
        ),
    )


CLEAN_KINDS = (clean_dates, fill_empty, clean_unit, clean_answers)
