"""What the table tasks share: made-up tables, their text, checks of what was written, programs."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from milo.suites.deskwork.family import Check, quoted
from milo.suites.deskwork.words import CITIES, FIRST, FRUITS, GOODS, sample

Cell = str | int
Row = Sequence[Cell]


class Schema(NamedTuple):
    """A table that an office might keep: who or what, where, and two numbers with their product."""

    stem: str
    columns: tuple[str, str, str, str]
    keys: Sequence[str]
    product: str


SCHEMAS = (
    Schema("orders", ("customer", "city", "items", "price"), FIRST, "total"),
    Schema("stock", ("item", "shop", "count", "price"), GOODS, "value"),
    Schema("staff", ("name", "office", "hours", "rate"), FIRST, "pay"),
    Schema("harvest", ("fruit", "farm", "crates", "weight"), FRUITS, "kg"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A filled schema: no two rows have the same first cell or the same third cell."""

    schema: Schema
    rows: tuple[tuple[str, str, int, int], ...]

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """The column names."""
        return self.schema.columns

    @property
    def csv(self) -> str:
        """The file's name."""
        return f"{self.schema.stem}.csv"

    @property
    def text(self) -> str:
        """The table as CSV."""
        return delimited(self.columns, self.rows)

    @property
    def lead(self) -> str:
        """The sentence that introduces the file."""
        return f"`{self.csv}` has the columns {', '.join(self.columns)}."

    @property
    def places(self) -> list[str]:
        """The distinct values of the second column, sorted."""
        return sorted({row[1] for row in self.rows})


def table_of(rng: random.Random, least: int = 4, most: int = 6) -> Table:
    """A table of so many rows; some of its two or three places come more than once."""
    schema = rng.choice(SCHEMAS)
    size = rng.randint(least, most)
    places = sample(rng, CITIES, 2 if size < 5 else 3)
    where = [*places, *rng.choices(places, k=size - len(places))]
    rng.shuffle(where)
    first = [rng.randint(2, 9), *rng.sample(range(10, 60), size - 1)]
    rng.shuffle(first)
    second = [rng.randint(3, 25) for _ in range(size)]
    return Table(
        schema=schema,
        rows=tuple(zip(sample(rng, schema.keys, size), where, first, second, strict=True)),
    )


def delimited(columns: Sequence[str], rows: Sequence[Row], sep: str = ",") -> str:
    """A table as text, the names first; no cell holds the separator."""
    return "".join(sep.join(map(str, row)) + "\n" for row in [columns, *rows])


def records(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """A table as a JSON list of objects, one a line."""
    lines = ",\n ".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
    return f"[{lines}]\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """The file to be written, delimited by `sep` or, where that is empty, JSON; makes checks."""

    path: str
    sep: str = ","

    def header(self, columns: Sequence[str]) -> Check:
        """The names of the columns."""
        return self._check("header", columns=list(columns))

    def column(self, name: str, values: Sequence[Cell]) -> Check:
        """One column from top to bottom."""
        return self._check("column", column=name, values=list(values))

    def table(self, columns: Sequence[str], rows: Sequence[Row]) -> Check:
        """The whole table."""
        return self._check("table", columns=list(columns), rows=[list(row) for row in rows])

    def row(self, keyed: tuple[str, str], valued: tuple[str, Cell]) -> Check:
        """The row that has a key in one column has a value in another: two (column, cell)."""
        (column, key), (of, value) = keyed, valued
        return self._check("row", column=column, key=key, of=of, value=value)

    def entries(self, wanted: dict[str, Cell]) -> list[Check]:
        """A JSON object: each value, and that nothing else is in it."""
        found = [self._check("key", key=key, value=value) for key, value in wanted.items()]
        return [*found, self._check("keys", keys=list(wanted))]

    def _check(self, kind: str, **parts: object) -> Check:
        return {"kind": kind, "path": self.path, "sep": self.sep, **parts}


def program(*steps: str) -> str:
    """A reference solution: a Python program of these steps."""
    return "python3 - " + quoted("\n".join(("import csv, json", *steps)))


def load_csv(path: str, name: str = "rows") -> str:
    """A step that reads a CSV file into a list of dicts."""
    return f"{name} = list(csv.DictReader(open({path!r})))"


def save_csv(path: str, columns: Sequence[str], sep: str = ",") -> str:
    """A step that writes `rows`, a list of dicts, with these columns."""
    return (
        f"with open({path!r}, 'w', newline='') as file:\n"
        f"    out = csv.DictWriter(file, {list(columns)!r}, delimiter={sep!r},"
        " extrasaction='ignore')\n"
        "    out.writeheader()\n"
        "    out.writerows(rows)"
    )


def save_json(path: str, value: str = "rows") -> str:
    """A step that writes the value of an expression as JSON."""
    return f"with open({path!r}, 'w') as file:\n    json.dump({value}, file)"
