"""The archive of records: the best constructions with where they came from, in one text file.

A line is one record in JSON. Lines are only ever appended, and only by a construction that is
better than all before it. Whoever opens the archive verifies every line by both verifiers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from milo.core.errors import RecordError
from milo.suites.arena.problems.catalogue import candidate_of, problems
from milo.suites.arena.problems.packing import packed, unpacked
from milo.suites.arena.problems.problem import AGREEMENT, Array, Rejected, verify

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
    """One record: a verified construction of a problem."""

    problem: str
    value: float
    construction: Array
    provenance: Provenance


class Archive:
    """A folder with the file of records. `open` reads and verifies; `add` appends.

    Several processes may add at once; each sees what the others wrote before it appends.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._known = problems()
        self._records: list[Best] = []
        self._read_bytes = 0
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
        """Append a construction if it beats the best; the record, or None where it doesn't.

        Raises `Rejected` where the verifiers refuse it, and `KeyError` for an unknown problem.
        """
        found = verify(self._known[problem], candidate_of(self._known[problem], construction))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self.path}.lock", timeout=LOCK_S):
            self._read()
            best = self.best(problem)
            if best and self._known[problem].gain(found.value, over=best.value) <= 0:
                return None
            record = Best(
                problem=problem,
                value=found.value,
                construction=found.construction,
                provenance=provenance,
            )
            self._append(record)
        return record

    def _append(self, record: Best) -> None:
        line = packed(record.problem, record.value, record.construction)
        text = json.dumps({"construction": line, **asdict(record.provenance)}) + "\n"
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            # What a killed writer left after the last whole line is cut off first.
            file.truncate(self._read_bytes)
            file.seek(self._read_bytes)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        self._read_bytes += len(text.encode())
        self._records.append(record)

    def _read(self) -> None:
        """Read and verify what was appended since the last look."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read_bytes)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self.warning = f"{self.path}: a torn last line was ignored" if whole != data else ""
        for line in whole.decode().splitlines():
            self._records.append(self._verified(line))
        self._read_bytes += len(whole)

    def _verified(self, line: str) -> Best:
        number = len(self._records) + 1
        try:
            data: Mapping[str, object] = json.loads(line)
            held = unpacked(str(data["construction"]))
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
        except (ValueError, KeyError, TypeError, Rejected) as error:
            raise RecordError(f"{self.path} line {number} can't be trusted: {error}") from error
        return Best(
            problem=held.problem,
            value=held.value,
            construction=found.construction,
            provenance=_provenance(data),
        )


def _provenance(data: Mapping[str, object]) -> Provenance:
    return Provenance(
        source=str(data["source"]),
        when=float(str(data["when"])),
        candidate=str(data["candidate"]),
        attempt=str(data["attempt"]),
        task=str(data["task"]),
    )
