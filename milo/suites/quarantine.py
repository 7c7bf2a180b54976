"""The tasks of a folder that are not to be used: kept beside them, by what they were then.

`milo suite check` writes the file, a run leaves out what it names. A task that has changed since
is no longer held by it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from milo.core.errors import TaskError
from milo.core.task import Task
from milo.suites.folder import Scan

FILE = "quarantine.json"
NOTE = "Written by `milo suite check`; runs leave these tasks out until they are changed."


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """Why a task is not to be used, and its content then ("" for one that could not be read)."""

    reason: str
    digest: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cleared:
    """A scan after its quarantine: tasks to use, reasons for those left out, and what is broken
    and not yet in quarantine."""

    tasks: Mapping[str, Task]
    left_out: Mapping[str, str] = field(default_factory=dict)
    broken: Mapping[str, TaskError] = field(default_factory=dict)


def read(folder: Path) -> Mapping[str, Held]:
    """What is in quarantine, by task; raises `TaskError` for a file that can't be read."""
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))["tasks"]
        return {
            str(name): Held(reason=str(one["reason"]), digest=str(one["digest"]))
            for name, one in raw.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        expected = "the file as `milo suite check` writes it"
        raise TaskError(str(path), expected, f"{type(error).__name__}: {error}") from error


def write(folder: Path, held: Mapping[str, Held]) -> None:
    """Put exactly these tasks into quarantine; raises `TaskError` where the folder is read-only."""
    path = folder / FILE
    tasks = {name: {"reason": one.reason, "digest": one.digest} for name, one in held.items()}
    try:
        if not tasks:
            path.unlink(missing_ok=True)
            return
        path.write_text(json.dumps({"note": NOTE, "tasks": tasks}, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise TaskError(str(path), "a folder that can be written", str(error)) from error


def cleared(scan: Scan, held: Mapping[str, Held]) -> Cleared:
    """What a run takes of a folder, and what it leaves out and why."""
    left_out = {name: held[name].reason for name in scan.broken if name in held}
    for name, one in held.items():
        if name in scan.tasks and scan.tasks[name].digest == one.digest:
            left_out[name] = one.reason
    return Cleared(
        tasks={name: task for name, task in scan.tasks.items() if name not in left_out},
        left_out=left_out,
        broken={name: error for name, error in scan.broken.items() if name not in left_out},
    )
