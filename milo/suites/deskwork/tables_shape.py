"""Table tasks that keep every cell as it is: other formats, columns, rows, order."""

from __future__ import annotations

import random
from collections.abc import Sequence

from milo.suites.deskwork.family import Draft
from milo.suites.deskwork.tables_parts import (
    Output,
    Table,
    delimited,
    load_csv,
    program,
    records,
    save_csv,
    save_json,
    table_of,
)

RENAMED = {
    "customer": "client", "city": "town", "items": "pieces", "price": "cost", "item": "article",
    "shop": "store", "count": "quantity", "name": "person", "office": "site", "hours": "time",
    "rate": "wage", "fruit": "product", "farm": "grower", "crates": "boxes", "weight": "kilos",
}  # fmt: skip


def csv_to_json(rng: random.Random) -> Draft:
    """CSV to a list of objects, numbers as numbers."""
    table = table_of(rng)
    name, place, first, second = table.columns
    out = Output(path=f"{table.schema.stem}.json", sep="")
    return Draft(
        instruction=(
            f"{table.lead} Convert it to `{out.path}`: a JSON list with one object per row, in the "
            f"same order, with the column names as keys. Write {first} and {second} as numbers, "
            f"not as strings."
        ),
        files={table.csv: table.text},
        goals=[
            out.column(column, [row[at] for row in table.rows])
            for at, column in enumerate((name, place, first, second))
        ],
        solution=program(
            load_csv(table.csv),
            f"for r in rows:\n    for c in ({first!r}, {second!r}):\n        r[c] = int(r[c])",
            save_json(out.path),
        ),
    )


def json_to_csv(rng: random.Random) -> Draft:
    """A list of objects to CSV, with an order of columns that is not that of the keys."""
    table, stem = (found := table_of(rng)), found.schema.stem
    order = list(table.columns)
    while order == list(table.columns):
        rng.shuffle(order)
    out = Output(path=f"{stem}.csv")
    return Draft(
        instruction=(
            f"`{stem}.json` is a list of objects with the keys {', '.join(table.columns)}. Write "
            f"it as `{out.path}` with a header line and the columns {', '.join(order)} in this "
            f"order, one row per object, in the same order as in the list."
        ),
        files={f"{stem}.json": records(table.columns, table.rows)},
        goals=[out.header(order), out.table(order, _picked(table, order))],
        solution=program(f"rows = json.load(open('{stem}.json'))", save_csv(out.path, order)),
    )


def other_separator(rng: random.Random) -> Draft:
    """Another separator between the cells."""
    table = table_of(rng)
    word, sep, ending = rng.choice(
        (("tab", "\t", "tsv"), ("semicolon", ";", "txt"), ("vertical bar (`|`)", "|", "txt"))
    )
    out = Output(path=f"{table.schema.stem}.{ending}", sep=sep)
    return Draft(
        instruction=(
            f"`{table.csv}` is a table whose cells are separated by commas. Write the same table, "
            f"with its header line, to `{out.path}`, with a {word} between the cells instead of a "
            f"comma."
        ),
        files={table.csv: table.text},
        goals=[out.table(table.columns, table.rows)],
        solution=program(load_csv(table.csv), save_csv(out.path, table.columns, sep)),
    )


def keep_columns(rng: random.Random) -> Draft:
    """Two of the columns, in a given order."""
    table, out = table_of(rng), Output(path="short.csv")
    kept = rng.sample(table.columns, 2)
    return Draft(
        instruction=(
            f"{table.lead} Write `short.csv` with a header line and only the columns {kept[0]} and "
            f"{kept[1]}, in this order. Keep all rows in the same order."
        ),
        files={table.csv: table.text},
        goals=[out.header(kept), out.table(kept, _picked(table, kept))],
        solution=program(load_csv(table.csv), save_csv("short.csv", kept)),
    )


def drop_column(rng: random.Random) -> Draft:
    """All columns but one."""
    table, out = table_of(rng), Output(path="public.csv")
    gone = rng.choice(table.columns)
    kept = [column for column in table.columns if column != gone]
    return Draft(
        instruction=(
            f"{table.lead} Write the table without the column {gone} to `public.csv`. Keep the "
            f"header line, the other columns and all rows in the same order."
        ),
        files={table.csv: table.text},
        goals=[out.header(kept), out.table(kept, _picked(table, kept))],
        solution=program(load_csv(table.csv), save_csv("public.csv", kept)),
    )


def rename_columns(rng: random.Random) -> Draft:
    """New names for two columns."""
    table, out = table_of(rng), Output(path="renamed.csv")
    old = rng.sample(table.columns, 2)
    names = [RENAMED[column] if column in old else column for column in table.columns]
    cells = {column: [row[at] for row in table.rows] for at, column in enumerate(table.columns)}
    return Draft(
        instruction=(
            f"{table.lead} Write the same table to `renamed.csv`, but with the column {old[0]} "
            f"renamed to {RENAMED[old[0]]} and the column {old[1]} renamed to {RENAMED[old[1]]}."
        ),
        files={table.csv: table.text},
        goals=[
            *(out.column(RENAMED[column], cells[column]) for column in old),
            out.table(names, table.rows),
        ],
        solution=program(
            load_csv(table.csv),
            f"names = {dict(zip(table.columns, names, strict=True))!r}",
            "rows = [{names[k]: v for k, v in r.items()} for r in rows]",
            save_csv("renamed.csv", names),
        ),
    )


def sort_rows(rng: random.Random) -> Draft:
    """Rows by a number; as text they would come in another order."""
    table, out = table_of(rng), Output(path="sorted.csv")
    down = rng.random() < 0.5
    rows = sorted(table.rows, key=lambda row: row[2], reverse=down)
    if tuple(rows) == table.rows:
        rows, down = rows[::-1], not down
    how = "largest first" if down else "smallest first"
    return Draft(
        instruction=(
            f"{table.lead} Write the table with its header line to `sorted.csv`, its rows sorted "
            f"by the number in the column {table.columns[2]}, {how}."
        ),
        files={table.csv: table.text},
        goals=[out.table(table.columns, rows)],
        solution=program(
            load_csv(table.csv),
            f"rows.sort(key=lambda r: int(r[{table.columns[2]!r}]), reverse={down})",
            save_csv("sorted.csv", table.columns),
        ),
    )


def filter_number(rng: random.Random) -> Draft:
    """Rows with at least or less than a number."""
    table, out = table_of(rng, 5, 7), Output(path="chosen.csv")
    limit = sorted(row[2] for row in table.rows)[rng.randint(2, len(table.rows) - 2)]
    least = rng.random() < 0.5
    rows = [row for row in table.rows if (row[2] >= limit) == least]
    words, sign = (f"at least {limit}", ">=") if least else (f"less than {limit}", "<")
    return Draft(
        instruction=(
            f"{table.lead} Write to `chosen.csv` the header line and only the rows whose "
            f"{table.columns[2]} is {words}, in the same order."
        ),
        files={table.csv: table.text},
        goals=[out.table(table.columns, rows)],
        solution=program(
            load_csv(table.csv),
            f"rows = [r for r in rows if int(r[{table.columns[2]!r}]) {sign} {limit}]",
            save_csv("chosen.csv", table.columns),
        ),
    )


def filter_records(rng: random.Random) -> Draft:
    """Objects of a list with a given text."""
    table, stem = (found := table_of(rng, 5, 7)), found.schema.stem
    place, column = rng.choice(table.places), table.columns[1]
    rows = [row for row in table.rows if row[1] == place]
    out = Output(path="chosen.json", sep="")
    return Draft(
        instruction=(
            f"`{stem}.json` is a list of objects with the keys {', '.join(table.columns)}. Write a "
            f"JSON list with only the objects whose {column} is {place}, unchanged and in the same "
            f"order, to `chosen.json`."
        ),
        files={f"{stem}.json": records(table.columns, table.rows)},
        goals=[out.table(table.columns, rows)],
        solution=program(
            f"rows = [r for r in json.load(open('{stem}.json')) if r[{column!r}] == {place!r}]",
            save_json("chosen.json"),
        ),
    )


def drop_repeats(rng: random.Random) -> Draft:
    """Each row only once."""
    table, out = table_of(rng), Output(path="unique.csv")
    rows = list(table.rows)
    for row in rng.sample(table.rows, 2):
        rows.insert(rng.randint(rows.index(row) + 1, len(rows)), row)
    return Draft(
        instruction=(
            f"Some rows of `{table.csv}` are repeated. Write the table with its header line to "
            f"`unique.csv`, each row only once: keep the first and leave out later copies. Do not "
            f"change the order."
        ),
        files={table.csv: delimited(table.columns, rows)},
        goals=[out.table(table.columns, table.rows)],
        solution=program(
            load_csv(table.csv),
            "rows = [r for i, r in enumerate(rows) if r not in rows[:i]]",
            save_csv("unique.csv", table.columns),
        ),
    )


def stack_tables(rng: random.Random) -> Draft:
    """One table below the other."""
    table, out = table_of(rng, 5, 7), Output(path="all.csv")
    cut = rng.randint(2, len(table.rows) - 2)
    one, two = rng.choice((("monday", "tuesday"), ("old", "new"), ("north", "south")))
    return Draft(
        instruction=(
            f"`{one}.csv` and `{two}.csv` have the same header line. Write `all.csv`: the header "
            f"line once, then all rows of `{one}.csv`, then all rows of `{two}.csv`."
        ),
        files={
            f"{one}.csv": delimited(table.columns, table.rows[:cut]),
            f"{two}.csv": delimited(table.columns, table.rows[cut:]),
        },
        goals=[out.table(table.columns, table.rows)],
        solution=program(
            load_csv(f"{one}.csv"),
            load_csv(f"{two}.csv", "more"),
            "rows += more",
            save_csv("all.csv", table.columns),
        ),
    )


def csv_to_object(rng: random.Random) -> Draft:
    """Two columns as one object: from name to number."""
    table, out = table_of(rng), Output(path="lookup.json", sep="")
    at = rng.choice((2, 3))
    key, value = table.columns[0], table.columns[at]
    return Draft(
        instruction=(
            f"{table.lead} Write `lookup.json`: one JSON object that has each {key} as a key and "
            f"its {value} as the value, a number."
        ),
        files={table.csv: table.text},
        goals=out.entries({row[0]: (row[2], row[3])[at - 2] for row in table.rows}),
        solution=program(
            load_csv(table.csv),
            save_json(out.path, f"{{r[{key!r}]: int(r[{value!r}]) for r in rows}}"),
        ),
    )


def _picked(table: Table, columns: Sequence[str]) -> list[list[str | int]]:
    """The rows with only these columns."""
    places = [table.columns.index(column) for column in columns]
    return [[row[at] for at in places] for row in table.rows]


SHAPE_KINDS = (
    csv_to_json,
    keep_columns,
    filter_number,
    json_to_csv,
    rename_columns,
    sort_rows,
    other_separator,
    drop_column,
    filter_records,
    csv_to_object,
    drop_repeats,
    stack_tables,
)
