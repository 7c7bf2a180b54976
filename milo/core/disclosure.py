"""Who may see what: one list by which every view is made (SPEC §6).

A running harness, a mutator and the orchestrator see a copy of a value that holds the listed
fields only; the rest is at its default, as if it had never been. So a field that is added later is
hidden until it is listed here, and a test that plants a mark in every field finds in no view what
is not listed.

* The **harness** sees the instruction and the folder of the task that it works on. Its tests,
  solution and judging stay with the runner, which needs them once the harness has ended.
* A **mutator** sees tasks of the search split: instruction, family, the files' names, and attempts
  with all but the verifier's own output; of the candidates of its island what was tried and what
  came of it on that split.
* The **orchestrator** sees the lineage's figures on the search split and the mutators' words, and
  no task's text.

Of the validation split both see one number for each island, its best accuracy; of the test split
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from typing import Any, TypeVar, cast

from milo.core.attempt import Outcome
from milo.core.evidence import Trace
from milo.core.lineage import Node
from milo.core.task import Step, Task

T = TypeVar("T")


class Reader(StrEnum):
    """Who looks."""

    HARNESS = "harness"
    MUTATOR = "mutator"
    ORCHESTRATOR = "orchestrator"


MEASURED = frozenset({"key", "status", "reward", "resolved", "usage", "timings", "flags", "detail"})
TRIED = frozenset(
    {
        "candidate",
        "island",
        "round",
        "parents",
        "harness",
        "mutator",
        "change",
        "patch_lines",
        "tries",
        "usage",
        "scores",
        "verdict",
        "reason",
        "gain",
        "support",
    }
)
SHOWN: Mapping[Reader, Mapping[type, frozenset[str]]] = {
    Reader.HARNESS: {
        Task: frozenset(
            {"id", "instruction", "workspace", "env", "limits", "needs", "setting", "steps"}
        ),
        Step: frozenset(
            {"name", "instruction", "files", "agent_timeout_s", "verifier_timeout_s", "healthcheck"}
        ),
    },
    Reader.MUTATOR: {
        Task: frozenset({"id", "instruction", "family", "workspace"}),
        Outcome: MEASURED | {"trace", "tries"},
        Trace: frozenset({"exchanges", "stdout", "stderr", "exit_code", "changed", "report"}),
        Node: TRIED,
    },
    Reader.ORCHESTRATOR: {Task: frozenset({"id"}), Node: TRIED},
}
"""The list. Values of a type that a reader has no entry for are not for it at all."""

SPLITS = ("search",)
"""The splits whose scores by task mutators and orchestrators see."""


class Hidden(TypeError):
    """A reader was to be shown a value of a type that it has no entry for."""


def shown_to(reader: Reader, value: T) -> T:
    """A copy of a value with what the reader may see of it; raises `Hidden` where that is nothing.

    Fields without a default that it may not see are empty texts.
    """
    kind = type(value)
    if kind not in SHOWN[reader]:
        raise Hidden(f"a {kind.__name__} is not for the {reader}")
    seen = SHOWN[reader][kind]
    parts: dict[str, Any] = {
        f.name: _part(reader, getattr(value, f.name)) if f.name in seen else _empty(f)
        for f in fields(cast(Any, value))
    }
    if isinstance(value, Node):
        parts["scores"] = {name: value.scores[name] for name in SPLITS if name in value.scores}
    return kind(**parts)


def _part(reader: Reader, part: object) -> object:
    """A field's value; parts that have an entry of their own are cut by it."""
    if is_dataclass(part) and type(part) in SHOWN[reader]:
        return shown_to(reader, part)
    if isinstance(part, tuple) and part and type(part[0]) in SHOWN[reader]:
        return tuple(shown_to(reader, item) for item in part)
    return part


def _empty(field: Field[Any]) -> object:
    if field.default is not MISSING:
        return field.default
    return "" if field.default_factory is MISSING else field.default_factory()
