"""Judge a table that was written to a file: run as `check.py TESTS LOGS WORKSPACE`.

`expected.json` holds `goals`, each about one file: delimited text where `sep` is given, else JSON.
The reward is the share of goals met. Text must agree but for blanks around it; in delimited text
12 and 12.0 are the same number, in JSON a number written as a string is none. The report says what
is wrong and never what would be right. Standard library only.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any, NamedTuple

MAX_BYTES = 1_000_000
NUMBER = re.compile(r"[-+]?\d{1,15}(\.\d{1,15})?")


class Wrong(Exception):
    """A check that failed, in public words."""


class Table(NamedTuple):
    """Column names, and one list of cells per row."""

    columns: list[str]
    rows: list[list[Any]]


def read(workspace: Path, path: str) -> str:
    """The text of a regular file of the workspace's top folder."""
    target = workspace / path
    try:
        status = os.lstat(target)
    except OSError:
        raise Wrong(f"{path} is missing") from None
    if not stat.S_ISREG(status.st_mode):
        raise Wrong(f"{path} is not a regular file")
    if status.st_size > MAX_BYTES:
        raise Wrong(f"{path} is too large")
    try:
        text = target.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Wrong(f"{path} is not UTF-8 text") from None
    if not text.strip():
        raise Wrong(f"{path} is empty")
    return text


def load_json(workspace: Path, path: str) -> Any:
    """The file's JSON value."""
    try:
        return json.loads(read(workspace, path))
    except (ValueError, RecursionError) as error:
        where = f": line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise Wrong(f"{path} is not valid JSON{where}") from None


def load_delimited(workspace: Path, path: str, sep: str) -> Table:
    """The file's table; the first line holds the column names, blank lines at the end are fine."""
    lines = read(workspace, path).splitlines()
    try:
        found = list(csv.reader(lines, delimiter=sep, strict=True))
    except csv.Error:
        raise Wrong(f"{path} cannot be read as a table") from None
    cells = [[cell.strip() for cell in line] for line in found]
    while cells and not any(cells[-1]):
        cells.pop()
    columns, *rows = cells or [[]]
    for number, row in enumerate(rows, 2):
        if len(row) != len(columns):
            raise Wrong(f"{path}: line {number} has {len(row)} cells, the header {len(columns)}")
    return Table(columns, rows)


def load_records(workspace: Path, path: str) -> Table:
    """The file's list of objects, all with the same keys; their order does not matter."""
    found = load_json(workspace, path)
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise Wrong(f"{path} is not a list of objects")
    columns = list(found[0]) if found else []
    if any(record.keys() != set(columns) for record in found):
        raise Wrong(f"{path}: the objects do not all have the same keys")
    return Table(columns, [[record[name] for name in columns] for record in found])


def load(workspace: Path, check: dict[str, Any]) -> Table:
    """The table that a check is about."""
    if check["sep"]:
        return load_delimited(workspace, check["path"], check["sep"])
    return load_records(workspace, check["path"])


def same(found: Any, wanted: Any, *, typed: bool) -> bool:
    """Whether a cell is right; `typed` cells, those of JSON, must be numbers where one is due."""
    if isinstance(wanted, str):
        return isinstance(found, str) and found.strip() == wanted
    if not typed:
        found = float(found) if NUMBER.fullmatch(found) else None
    if isinstance(found, bool) or not isinstance(found, int | float) or abs(found) > 1e15:
        return False
    return math.isclose(found, wanted, rel_tol=0.0, abs_tol=1e-6)


def cells_of(table: Table, check: dict[str, Any], name: str) -> list[Any]:
    """The cells of a column."""
    if name not in table.columns:
        raise Wrong(f"{check['path']}: column {name} is missing")
    at = table.columns.index(name)
    return [row[at] for row in table.rows]


def check_header(workspace: Path, check: dict[str, Any]) -> None:
    """The columns have these names, in this order (in JSON in any)."""
    found, wanted = load(workspace, check).columns, check["columns"]
    if found == wanted or (not check["sep"] and sorted(found) == sorted(wanted)):
        return
    raise Wrong(f"{check['path']}: wrong column names, or in the wrong order")


def check_column(workspace: Path, check: dict[str, Any]) -> None:
    """A column holds these values from top to bottom."""
    name, wanted, typed = check["column"], check["values"], not check["sep"]
    found = cells_of(load(workspace, check), check, name)
    if len(found) != len(wanted):
        raise Wrong(f"{check['path']}: wrong number of rows ({len(found)})")
    pairs = zip(found, wanted, strict=True)
    wrong = sum(not same(cell, value, typed=typed) for cell, value in pairs)
    if wrong:
        raise Wrong(f"{check['path']}: column {name} is wrong in {wrong} rows")


def check_table(workspace: Path, check: dict[str, Any]) -> None:
    """Header and rows are right, all of them and in order."""
    check_header(workspace, check)
    for name, values in zip(check["columns"], zip(*check["rows"], strict=True), strict=True):
        check_column(workspace, {**check, "column": name, "values": values})


def check_row(workspace: Path, check: dict[str, Any]) -> None:
    """One row has `key` in the column `column`, and it has the value in the column `of`."""
    path, typed = check["path"], not check["sep"]
    table = load(workspace, check)
    keys, values = (cells_of(table, check, check[name]) for name in ("column", "of"))
    found = [v for k, v in zip(keys, values, strict=True) if same(k, check["key"], typed=typed)]
    if len(found) != 1:
        raise Wrong(f"{path}: there is not one row for each value of {check['column']}")
    if not same(found[0], check["value"], typed=typed):
        raise Wrong(f"{path}: column {check['of']} is wrong in a row")


def load_object(workspace: Path, path: str) -> dict[str, Any]:
    """The file's JSON object."""
    found = load_json(workspace, path)
    if not isinstance(found, dict):
        raise Wrong(f"{path} is not a JSON object")
    return found


def check_keys(workspace: Path, check: dict[str, Any]) -> None:
    """The file's JSON object has these keys and no others."""
    found = load_object(workspace, check["path"])
    if found.keys() != set(check["keys"]):
        raise Wrong(f"{check['path']}: a key is missing or should not be there")


def check_key(workspace: Path, check: dict[str, Any]) -> None:
    """The file's JSON object has this value for the key."""
    path, key = check["path"], check["key"]
    found = load_object(workspace, path)
    if key not in found:
        raise Wrong(f"{path}: a key is missing")
    if not same(found[key], check["value"], typed=True):
        raise Wrong(f"{path}: the value of a key is wrong or of the wrong type")


CHECKS = {
    "header": check_header,
    "column": check_column,
    "table": check_table,
    "row": check_row,
    "keys": check_keys,
    "key": check_key,
}


def judge(expected: dict[str, Any], workspace: Path) -> tuple[float, str]:
    """The reward and the report."""
    goals, missed = expected["goals"], []
    for check in goals:
        try:
            CHECKS[check["kind"]](workspace, check)
        except Wrong as wrong:
            missed.append(str(wrong))
    met = len(goals) - len(missed)
    words = [f"{met} of {len(goals)} checks passed", *dict.fromkeys(missed)]
    return met / len(goals), "\n".join(words) + "\n"


def main(tests: str, logs: str, workspace: str) -> None:
    """Write reward.json and report.txt into `logs`."""
    expected = json.loads((Path(tests) / "expected.json").read_text())
    reward, report = judge(expected, Path(workspace))
    (Path(logs) / "report.txt").write_text(report)
    (Path(logs) / "reward.json").write_text(json.dumps({"reward": reward}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
