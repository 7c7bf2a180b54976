"""What a family of deskwork tasks is, and how a draft becomes a task with its verifier."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Protocol

from milo.core.task import Limits, Task
from milo.core.tree import File, FileTree

Check = Mapping[str, Any]

LIMITS = Limits(
    agent_timeout_s=90.0, verifier_timeout_s=30.0, memory_mb=1024, storage_mb=64, processes=64
)


class Family(Protocol):
    """A module with a NAME and a generator of tasks; the same index gives the same task."""

    @property
    def NAME(self) -> str:
        """The family's name: the stratum of splits and the first part of its task ids."""
        ...

    def make(self, index: int, rng: random.Random) -> Task:
        """The task with this index; `rng` is seeded from family, index and suite seed."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A task before it gets its verifier.

    `goals` are checks that the untouched workspace fails, `guards` checks that it passes (see
    `verifier/check.py` for their kinds). `solution` is the body of the reference shell script,
    run in the workspace.
    """

    instruction: str
    files: Mapping[str, str]
    goals: Sequence[Check]
    solution: str
    guards: Sequence[Check] = field(default_factory=tuple)


Kind = Callable[[random.Random], Draft]


def task_from(family: str, index: int, draft: Draft) -> Task:
    """A task that `verifier/check.py` judges by files."""
    expected = {"goals": list(draft.goals), "guards": list(draft.guards)}
    return assemble(family, index, draft, {"check.py": verifier_text("check.py")}, expected)


def assemble(
    family: str, index: int, draft: Draft, scripts: Mapping[str, str], expected: Mapping[str, Any]
) -> Task:
    """Put workspace, verifier scripts, expected data and reference solution together."""
    data = json.dumps(expected, indent=1, sort_keys=True) + "\n"
    tests = FileTree.of_texts({**scripts, "expected.json": data})
    entry = File(verifier_text("test.sh").encode(), executable=True)
    script = f"#!/bin/bash\nset -eu\n{draft.solution.strip()}\n"
    return Task(
        id=f"{family}-{index:03d}",
        instruction=draft.instruction,
        family=family,
        workspace=FileTree.of_texts(draft.files),
        tests=FileTree({**tests, "test.sh": entry}),
        solution=FileTree({"solve.sh": File(script.encode(), executable=True)}),
        limits=LIMITS,
    )


def verifier_text(name: str) -> str:
    """The text of a script in `verifier/`."""
    folder = resources.files("milo.suites.deskwork") / "verifier"
    return (folder / name).read_text(encoding="utf-8")


def pick_kind(kinds: Sequence[Kind], index: int, rng: random.Random) -> Draft:
    """A draft of the kind whose turn it is: kinds alternate, so each is as frequent."""
    return kinds[index % len(kinds)](rng)


def quoted(text: str) -> str:
    """A here-document body that writes `text` unchanged, for reference solutions."""
    return f"<<'END_OF_TEXT'\n{text.rstrip(chr(10))}\nEND_OF_TEXT"


def lines(path: str, text: str, **options: object) -> Check:
    """A check of a file's lines."""
    return {"kind": "lines", "path": path, "text": text, **options}


def word(path: str, *accepted: str) -> Check:
    """A check of a one-phrase answer."""
    return {"kind": "word", "path": path, "accepted": list(accepted)}


def number(path: str, value: float, tolerance: float = 1e-6) -> Check:
    """A check of a numeric answer."""
    return {"kind": "number", "path": path, "value": value, "tolerance": tolerance}


def unchanged(files: Mapping[str, str], paths: Sequence[str]) -> list[Check]:
    """Guards: these files keep their content."""
    return [lines(path, files[path]) for path in paths]
