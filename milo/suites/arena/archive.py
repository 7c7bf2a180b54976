"""The archive of records: the best constructions with where they came from, in one text file.

A line is one record in JSON. Lines are only ever appended, and only by a construction that is
better than all before it. Whoever opens the archive verifies every line by both verifiers.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from milo.core.errors import RecordError
from milo.suites.arena.problems.catalogue import candidate_of, problems
from milo.suites.arena.problems.packing import packed, unpacked
from milo.suites.arena.problems.problem import AGREEMENT, Array, Verified, verify

FILE = "records.jsonl"
LOCK_S = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """Who found a construction: the run, the candidate and attempt in it, the task, and when
    (seconds since the epoch). Empty words where there was none, as for a file of the user's."""

    source: str
    when: float
    candidate: str = ""
    attempt: str = ""
    task: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Best:
    """One record: a construction of a problem as it was given, and its verified value."""

    problem: str
    value: float
    construction: Array
    provenance: Provenance


class Archive:
    """A folder with the file of records. Opening reads and verifies; `add` and `enter` append.

    Several processes may add at once; each sees what the others wrote before it appends.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._known = problems()
        self._records: list[Best] = []
        self._lines = 0
        self._read_bytes = 0
        self._ended = True
        self.warning = ""
        self._read()

    @property
    def records(self) -> Sequence[Best]:
        """Every record, in order."""
        return tuple(self._records)

    def best(self, problem: str) -> Best | None:
        """The best record of a problem."""
        mine = [one for one in self._records if one.problem == problem]
        return mine[-1] if mine else None

    def add(self, problem: str, construction: Array, provenance: Provenance) -> Best | None:
        """Verify a construction and append it if it beats the best; None where it doesn't.

        Raises `Rejected` where the verifiers refuse it, and `KeyError` for an unknown problem.
        """
        known = self._known[problem]
        return self.enter(problem, verify(known, candidate_of(known, construction)), provenance)

    def enter(self, problem: str, found: Verified, provenance: Provenance) -> Best | None:
        """Append what was verified just now if it beats the best; None where it doesn't.

        What is kept is the construction as it was given: verified again, it has the same value.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self.path}.lock", timeout=LOCK_S):
            self._read()
            best = self.best(problem)
            if best and self._known[problem].gain(found.value, over=best.value) <= 0:
                return None
            record = Best(
                problem=problem,
                value=found.value,
                construction=found.given,
                provenance=provenance,
            )
            self._append(record)
        return record

    def _append(self, record: Best) -> None:
        line = packed(record.problem, record.value, record.construction)
        text = json.dumps({"construction": line, **asdict(record.provenance)}) + "\n"
        data = (b"" if self._ended else b"\n") + text.encode()
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            # What a killed writer left of its line is cut off first.
            file.truncate(self._read_bytes)
            file.seek(self._read_bytes)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self._read_bytes += len(data)
        self._lines += 1
        self._ended = True
        self._records.append(record)

    def _read(self) -> None:
        """Read and verify what was appended since the last look."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read_bytes)
            data = file.read()
        if not self._ended and data[:1] == b"\n":
            data, self._ended = data[1:], True
            self._read_bytes += 1
        *lines, tail = data.split(b"\n")
        for line in lines:
            self._take(line + b"\n")
        self.warning = ""
        if tail and _is_whole(tail):
            self._take(tail)
            self._ended = False
        elif tail:
            self.warning = f"{self.path}: a torn last line was ignored"

    def _take(self, line: bytes) -> None:
        """Verify one line and go past it; blank ones hold nothing."""
        number = self._lines + 1
        if line.strip():
            try:
                self._records.append(self._verified(line))
            except ValueError as error:  # `Rejected` and bad UTF-8 are such
                raise RecordError(
                    f"{self.path} line {number} can't be trusted: {_one_line(error)}. Take that "
                    f"line out of the file (keep a copy): the others stand, and what runs found "
                    f"is entered again from the runs"
                ) from error
        self._lines = number
        self._read_bytes += len(line)

    def _verified(self, line: bytes) -> Best:
        data = _object(line)
        provenance = _provenance(data)
        held = unpacked(_word(data, "construction"))
        if held is None or held.problem not in self._known:
            raise ValueError("it holds no construction of a known problem")
        problem = self._known[held.problem]
        found = verify(problem, candidate_of(problem, held.construction))
        before = self.best(held.problem)
        # Another machine's arithmetic may round the last bit another way.
        if not abs(found.value - held.value) <= AGREEMENT * max(abs(held.value), problem.floor):
            raise ValueError(f"it says {held.value!r}, the verifiers {found.value!r}")
        if before and problem.gain(held.value, over=before.value) <= 0:
            raise ValueError("it is no better than one before it")
        return Best(
            problem=held.problem,
            value=held.value,
            construction=found.given,
            provenance=provenance,
        )


def _is_whole(line: bytes) -> bool:
    """Whether a last line without its end is a whole record: no beginning of one is JSON."""
    try:
        json.loads(line.decode())
    except (ValueError, RecursionError):
        return False
    return True


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _object(line: bytes) -> Mapping[str, object]:
    """The JSON object of a line; raises `ValueError` where there is none."""
    try:
        data = json.loads(line.decode())
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ValueError("it is no JSON of ours: nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError(f"expected a JSON object, found {type(data).__name__}")
    return data


def _word(data: Mapping[str, object], key: str) -> str:
    word = data.get(key)
    if not isinstance(word, str):
        raise ValueError(f"expected a text under the key {key!r}")
    return word


def _provenance(data: Mapping[str, object]) -> Provenance:
    when = data.get("when")
    if not isinstance(when, float) or not math.isfinite(when):
        raise ValueError("expected seconds since the epoch under the key 'when'")
    return Provenance(
        source=_word(data, "source"),
        when=when,
        candidate=_word(data, "candidate"),
        attempt=_word(data, "attempt"),
        task=_word(data, "task"),
    )
