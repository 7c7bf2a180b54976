"""What all attempts of a run come to, told without reading them: `attempts/sums.json`.

The file holds the sums over the finished parts, and which parts these are, by their number and the
ends of their files: it is believed only where exactly these lie beside it. What is pending is added
row by row. Losing the file loses nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from milo.core.attempt import AttemptKey, Outcome, Usage
from milo.core.errors import RecordError
from milo.store.codec import decode, encode
from milo.store.files import Disk, write_atomic
from milo.store.lines import LineReader

NAME = "sums.json"
PENDING = "pending.jsonl"
TAIL_BYTES = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingRow:
    """One line of `pending.jsonl`: an outcome, the part that it will be in, and the status of the
    outcome in an earlier part whose place it takes ("" for none, None in files of old)."""

    part: int
    outcome: Outcome
    replaces: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptSums:
    """Keys with an outcome, those with a valid one, the others by status; and the usage of all
    outcomes, replaced ones included."""

    made: int = 0
    valid: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class SumsFile:
    """The file's content: sums over the first `parts` parts, whose ends hash to `digest`."""

    parts: int
    digest: str
    sums: AttemptSums


def part_path(folder: Path, number: int) -> Path:
    """Where the part with this number (from 1) lies."""
    return folder / f"part-{number:05d}.parquet"


def write_sums(folder: Path, parts: int, sums: AttemptSums, disk: Disk) -> None:
    """Leave the sums over the finished parts beside them; not forced to the disk."""
    content = SumsFile(parts=parts, digest=_ends(folder, parts), sums=sums)
    write_atomic(folder / NAME, encode(content), disk, durable=False)


def read_finished(folder: Path, parts: int) -> AttemptSums | None:
    """The sums over the finished parts; None where they aren't told, or told of other parts."""
    try:
        content = decode(SumsFile, (folder / NAME).read_bytes(), str(folder / NAME))
        return content.sums if (content.parts, content.digest) == _state(folder, parts) else None
    except (OSError, RecordError):
        return None


def read_sums(folder: Path) -> AttemptSums | None:
    """The sums over everything on record; None where only the whole table tells."""
    lines = LineReader(folder / PENDING)
    # Before the parts: a writer that compacts in between moves rows from here to there.
    rows = [decode(PendingRow, line.body, lines.where(line.number)) for line in lines]
    parts = sum(1 for _ in folder.glob("part-*.parquet"))
    finished = read_finished(folder, parts)
    pending = [row for row in rows if row.part > parts]
    if finished is None or any(row.replaces is None for row in pending):
        return None
    return with_pending(finished, pending)


def with_pending(finished: AttemptSums, rows: Iterable[PendingRow]) -> AttemptSums:
    """The sums with rows added that are in no part yet."""
    newest: dict[AttemptKey, Outcome] = {}
    faults, made, usage = Counter(finished.faults), finished.made, finished.usage
    for row in rows:
        key = row.outcome.key
        if key not in newest:
            made += not row.replaces
            faults[row.replaces or ""] -= bool(row.replaces)
        newest[key] = row.outcome
        usage += row.outcome.usage
    faults.update(str(outcome.status) for outcome in newest.values() if not outcome.is_valid)
    return AttemptSums(
        made=made,
        valid=finished.valid + sum(outcome.is_valid for outcome in newest.values()),
        faults={status: n for status, n in faults.items() if n},
        usage=usage,
    )


def _state(folder: Path, parts: int) -> tuple[int, str]:
    return parts, _ends(folder, parts)


def _ends(folder: Path, parts: int) -> str:
    """A hash of the last bytes of each part: a Parquet file ends with its own description."""
    ends = hashlib.blake2b(digest_size=16)
    for number in range(1, parts + 1):
        with part_path(folder, number).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            ends.update(f"{number}:{size}:".encode() + file.read())
    return ends.hexdigest()
