"""Outcomes as rows of typed Parquet columns, and back; the format of `attempts/part-*.parquet`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from milo.core.attempt import AttemptKey, Outcome, Status, Timings, Usage
from milo.core.errors import RecordError
from milo.store.codec import decode, encode
from milo.store.key_index import hash_keys

REPEATED = ("harness", "task", "task_digest", "model", "status")
"""Text columns with few distinct values; read as dictionaries they cost little memory."""

USAGE_FIELDS = tuple(field.name for field in fields(Usage))
TIMING_FIELDS = tuple(field.name for field in fields(Timings))
KEY_FIELDS = tuple(field.name for field in fields(AttemptKey))
USAGE_KEY = b"milo.usage"


def schema() -> Any:
    """The columns. `key_high`, `key_low` hash the key; `valid` is False where missing."""
    text = {name: pa.string() for name in ("harness", "task", "task_digest", "model")}
    numbers = {name: pa.int64() for name in USAGE_FIELDS}
    columns = {
        "key_high": pa.uint64(),
        "key_low": pa.uint64(),
        "valid": pa.bool_(),
        **text,
        "replicate": pa.int64(),
        "index": pa.int64(),
        "status": pa.string(),
        "reward": pa.float64(),
        "resolved": pa.bool_(),
        **numbers,
        "dollars": pa.float64(),
        "estimated": pa.bool_(),
        **{name: pa.float64() for name in TIMING_FIELDS},
        "trace": pa.string(),
        "flags": pa.list_(pa.string()),
        "detail": pa.string(),
        "tries": pa.int64(),
    }
    return pa.schema(list(columns.items()))


def to_parquet(outcomes: Sequence[Outcome]) -> bytes:
    """One part: the outcomes in order, with their total usage in the file's metadata."""
    total = sum_usage(outcome.usage for outcome in outcomes)
    table = to_table(outcomes).replace_schema_metadata({USAGE_KEY: encode(total)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data


def to_table(outcomes: Sequence[Outcome]) -> Any:
    """The outcomes as an Arrow table, one row each, in order."""
    high, low = hash_keys([outcome.key for outcome in outcomes])
    columns: dict[str, Any] = {
        "key_high": high,
        "key_low": low,
        "valid": [o.is_valid for o in outcomes],
        "status": [o.status.value for o in outcomes],
        "flags": [list(o.flags) for o in outcomes],
    }
    for name in ("reward", "resolved", "trace", "detail", "tries"):
        columns[name] = [getattr(o, name) for o in outcomes]
    for name in KEY_FIELDS:
        columns[name] = [getattr(o.key, name) for o in outcomes]
    for name in USAGE_FIELDS:
        columns[name] = [getattr(o.usage, name) for o in outcomes]
    for name in TIMING_FIELDS:
        columns[name] = [getattr(o.timings, name) for o in outcomes]
    return pa.table({name: columns[name] for name in schema().names}, schema=schema())


def from_rows(table: Any) -> list[Outcome]:
    """The rows of a table as outcomes, in order."""
    return [_outcome(row) for row in table.to_pylist()]


def _outcome(row: Mapping[str, Any]) -> Outcome:
    return Outcome(
        key=AttemptKey(**{name: row[name] for name in KEY_FIELDS}),
        status=Status(row["status"]),
        reward=row["reward"],
        resolved=row["resolved"],
        usage=Usage(**{name: row[name] for name in USAGE_FIELDS}),
        timings=Timings(**{name: row[name] for name in TIMING_FIELDS}),
        trace=row["trace"],
        flags=tuple(row["flags"]),
        detail=row["detail"],
        tries=row["tries"],
    )


def open_part(path: Path) -> Any:
    """A part opened for reading columns; raises `RecordError` where it is damaged."""
    try:
        return pq.ParquetFile(path, read_dictionary=list(REPEATED), memory_map=True)
    except (pa.ArrowException, OSError) as error:
        raise RecordError(f"{path}: damaged table of attempts: {error}") from error


def usage_of(part: Any, path: Path) -> Usage:
    """The total usage of a part, from its metadata."""
    metadata = part.schema_arrow.metadata or {}
    if USAGE_KEY not in metadata:
        raise RecordError(f"{path}: the table lacks its total usage")
    return decode(Usage, metadata[USAGE_KEY], str(path))


def sum_usage(usages: Any) -> Usage:
    """Usages added up."""
    return sum(usages, Usage())
