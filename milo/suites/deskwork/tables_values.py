"""Table tasks that make new cells: computed columns, totals, joins of two files, clean values."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from milo.suites.deskwork.family import Draft
from milo.suites.deskwork.tables_parts import (
    Output,
    Table,
    delimited,
    load_csv,
    program,
    save_csv,
    save_json,
    table_of,
)
from milo.suites.deskwork.words import LAST, sample


def add_product(rng: random.Random) -> Draft:
    """A column that is the product of two others."""
    table, out = table_of(rng), Output(path="extended.csv")
    new, (first, second) = table.schema.product, table.columns[2:]
    values = [row[2] * row[3] for row in table.rows]
    return _with_column(
        table,
        out,
        new,
        values,
        instruction=(
            f"{table.lead} Write the same table to `extended.csv` with one more column {new} at "
            f"the end: {first} times {second}."
        ),
        step=f"r[{new!r}] = int(r[{first!r}]) * int(r[{second!r}])",
    )


def add_level(rng: random.Random) -> Draft:
    """A column that says on which side of a limit a number is."""
    table, out = table_of(rng), Output(path="levels.csv")
    column = table.columns[2]
    limit = sorted(row[2] for row in table.rows)[rng.randint(1, len(table.rows) - 1)]
    values = ["high" if row[2] >= limit else "low" for row in table.rows]
    return _with_column(
        table,
        out,
        "level",
        values,
        instruction=(
            f"{table.lead} Write the same table to `levels.csv` with one more column level at the "
            f"end: `high` where {column} is {limit} or more, else `low`."
        ),
        step=f"r['level'] = 'high' if int(r[{column!r}]) >= {limit} else 'low'",
    )


def number_rows(rng: random.Random) -> Draft:
    """A first column that counts the rows."""
    table, out = table_of(rng), Output(path="numbered.csv")
    columns = ["nr", *table.columns]
    return Draft(
        instruction=(
            f"{table.lead} Write the same table to `numbered.csv` with a new first column nr that "
            f"numbers the rows 1, 2, 3 and so on."
        ),
        files={table.csv: table.text},
        goals=[
            out.header(columns),
            out.table(columns, [[at, *row] for at, row in enumerate(table.rows, 1)]),
        ],
        solution=program(
            load_csv(table.csv),
            "for i, r in enumerate(rows):\n    r['nr'] = i + 1",
            save_csv("numbered.csv", columns),
        ),
    )


def _with_column(
    table: Table, out: Output, new: str, values: Sequence[str | int], *, instruction: str, step: str
) -> Draft:
    """A task to add a last column; `step` sets the cell of a row `r`."""
    columns = [*table.columns, new]
    rows = [(*row, value) for row, value in zip(table.rows, values, strict=True)]
    return Draft(
        instruction=instruction,
        files={table.csv: table.text},
        goals=[out.header(columns), out.column(new, values), out.table(columns, rows)],
        solution=program(
            load_csv(table.csv), f"for r in rows:\n    {step}", save_csv(out.path, columns)
        ),
    )


def totals_table(rng: random.Random) -> Draft:
    """A sum per group, as a sorted table."""
    table, out = table_of(rng, 5, 7), Output(path="totals.csv")
    _, place, column, _ = table.columns
    sums = _sums(table)
    return Draft(
        instruction=(
            f"{table.lead} Write `totals.csv` with the header `{place},total` and one row for each "
            f"{place}, sorted by {place}; total is the sum of {column} over its rows."
        ),
        files={table.csv: table.text},
        goals=[
            *(out.row((place, name), ("total", value)) for name, value in sums.items()),
            out.table([place, "total"], list(sums.items())),
        ],
        solution=program(
            load_csv(table.csv),
            f"sums = {{}}\nfor r in rows:\n    key = r[{place!r}]\n"
            f"    sums[key] = sums.get(key, 0) + int(r[{column!r}])",
            f"rows = [{{{place!r}: k, 'total': v}} for k, v in sorted(sums.items())]",
            save_csv("totals.csv", (place, "total")),
        ),
    )


def totals_object(rng: random.Random) -> Draft:
    """A sum per group, as an object."""
    table, out = table_of(rng, 5, 7), Output(path="totals.json", sep="")
    _, place, column, _ = table.columns
    return Draft(
        instruction=(
            f"{table.lead} Add up {column} for each {place} and write `totals.json`: one JSON "
            f"object with each {place} as a key and its sum, a number, as the value."
        ),
        files={table.csv: table.text},
        goals=out.entries(dict(_sums(table))),
        solution=program(
            load_csv(table.csv),
            f"sums = {{}}\nfor r in rows:\n    key = r[{place!r}]\n"
            f"    sums[key] = sums.get(key, 0) + int(r[{column!r}])",
            save_json("totals.json", "sums"),
        ),
    )


def counts_object(rng: random.Random) -> Draft:
    """The number of rows per group, as an object."""
    table, out = table_of(rng, 5, 7), Output(path="counts.json", sep="")
    place = table.columns[1]
    places = [row[1] for row in table.rows]
    return Draft(
        instruction=(
            f"{table.lead} Count the rows of each {place} and write `counts.json`: one JSON object "
            f"with each {place} as a key and the number of its rows as the value."
        ),
        files={table.csv: table.text},
        goals=out.entries({name: places.count(name) for name in table.places}),
        solution=program(
            load_csv(table.csv),
            f"found = [r[{place!r}] for r in rows]",
            save_json("counts.json", "{name: found.count(name) for name in found}"),
        ),
    )


def _sums(table: Table) -> Mapping[str, int]:
    return {place: sum(row[2] for row in table.rows if row[1] == place) for place in table.places}


def top_row(rng: random.Random) -> Draft:
    """The row with the largest or smallest number, as an object."""
    table, out = table_of(rng), Output(path="top.json", sep="")
    name, place, column, _ = table.columns
    large = rng.random() < 0.5
    row = (max if large else min)(table.rows, key=lambda row: row[2])
    which, function = ("largest", "max") if large else ("smallest", "min")
    return Draft(
        instruction=(
            f"{table.lead} Find the row with the {which} {column} and write `top.json`: one JSON "
            f"object with the keys {name}, {place} and {column} of this row, {column} as a number."
        ),
        files={table.csv: table.text},
        goals=out.entries({name: row[0], place: row[1], column: row[2]}),
        solution=program(
            load_csv(table.csv),
            f"top = {function}(rows, key=lambda r: int(r[{column!r}]))",
            f"top[{column!r}] = int(top[{column!r}])",
            save_json("top.json", f"{{k: top[k] for k in {[name, place, column]!r}}}"),
        ),
    )


def join_tables(rng: random.Random) -> Draft:
    """A column from a second file, found by a key that both have."""
    table, out = table_of(rng), Output(path="joined.csv")
    place = table.columns[1]
    managers = dict(zip(table.places, sample(rng, LAST, len(table.places)), strict=True))
    listed = rng.sample(sorted(managers.items()), len(managers))
    columns, found = [*table.columns, "manager"], [managers[row[1]] for row in table.rows]
    rows = [(*row, manager) for row, manager in zip(table.rows, found, strict=True)]
    return Draft(
        instruction=(
            f"{table.lead} `managers.csv` has the columns {place}, manager. Write `joined.csv`: "
            f"all rows of `{table.csv}` in the same order, with one more column manager at the "
            f"end, looked up by {place}."
        ),
        files={table.csv: table.text, "managers.csv": delimited((place, "manager"), listed)},
        goals=[out.header(columns), out.column("manager", found), out.table(columns, rows)],
        solution=program(
            load_csv(table.csv),
            load_csv("managers.csv", "more"),
            f"found = {{m[{place!r}]: m['manager'] for m in more}}",
            f"for r in rows:\n    r['manager'] = found[r[{place!r}]]",
            save_csv("joined.csv", columns),
        ),
    )


def join_matching(rng: random.Random) -> Draft:
    """Rows whose key a second file lists."""
    table, out = table_of(rng, 5, 7), Output(path="listed.csv")
    name = table.columns[0]
    rows = table.rows
    kept = {row[0] for row in rng.sample(rows, rng.randint(2, len(rows) - 2))}
    return Draft(
        instruction=(
            f"{table.lead} `wanted.txt` holds one {name} per line. Write to `listed.csv` the "
            f"header line and only the rows of `{table.csv}` whose {name} is in `wanted.txt`, in "
            f"the order of `{table.csv}`."
        ),
        files={table.csv: table.text, "wanted.txt": "\n".join(sorted(kept)) + "\n"},
        goals=[out.table(table.columns, [row for row in rows if row[0] in kept])],
        solution=program(
            load_csv(table.csv),
            "kept = open('wanted.txt').read().split()",
            f"rows = [r for r in rows if r[{name!r}] in kept]",
            save_csv("listed.csv", table.columns),
        ),
    )


VALUE_KINDS = (
    add_product,
    totals_object,
    join_tables,
    add_level,
    counts_object,
    top_row,
    totals_table,
    join_matching,
    number_rows,
)
