"""The tables printed in the papers, read from `data/`."""

from __future__ import annotations

import csv
from pathlib import Path

DATA = Path(__file__).parent / "data"


def table(name: str) -> list[dict[str, str]]:
    """The rows of one table, as text by column."""
    with (DATA / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def numbers(row: dict[str, str], *columns: str) -> dict[str, float]:
    """Some columns of a row as numbers."""
    return {column: float(row[column]) for column in columns}
