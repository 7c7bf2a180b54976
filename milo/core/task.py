"""A task: an instruction, the folder it starts in, and a verifier that judges the folder left."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from milo.core.errors import TaskError
from milo.core.tree import FileTree


class Network(StrEnum):
    """What an environment may reach beside the gateway."""

    NONE = "no-network"
    ALLOWLIST = "allowlist"
    PUBLIC = "public"


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What one environment may use. Seconds, MiB and counts."""

    agent_timeout_s: float = 120.0
    verifier_timeout_s: float = 600.0
    memory_mb: int = 1024
    storage_mb: int = 256
    processes: int = 128
    cpus: float = 1.0
    network: Network = Network.NONE


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One task of a suite.

    `workspace` is what the environment starts with; `tests` enters only after the agent phase
    has ended; `solution` is the reference, run by `suite check` only. `needs` names sandbox
    capabilities (for instance ``"image-build"``) without which the task is refused. A task whose
    reward comes in steps declares `resolved_at`, the reward that counts as a full solve.
    """

    id: str
    instruction: str
    family: str = ""
    workspace: FileTree = field(default_factory=FileTree)
    tests: FileTree = field(default_factory=FileTree)
    solution: FileTree = field(default_factory=FileTree)
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    needs: frozenset[str] = frozenset()
    resolved_at: float = 1.0

    @property
    def digest(self) -> str:
        """Content hash over everything that can change an outcome."""
        parts = (
            self.instruction,
            self.workspace.digest,
            self.tests.digest,
            repr(sorted(self.env.items())),
            repr(self.limits),
            repr(self.resolved_at),
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Splits:
    """Disjoint task ids: searched on, validated on, and read once after the winner is frozen."""

    search: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse empty or overlapping splits."""
        for name in ("search", "validation"):
            if not getattr(self, name):
                raise TaskError(f"split {name}", "at least one task", "none")
        seen: dict[str, str] = {}
        for name in ("search", "validation", "test"):
            for task_id in getattr(self, name):
                if task_id in seen:
                    raise TaskError(
                        f"task {task_id}",
                        "to stand in one split, once",
                        f"{seen[task_id]} and {name}",
                    )
                seen[task_id] = name


@dataclass(frozen=True, kw_only=True, slots=True)
class Suite:
    """A named set of tasks with fixed splits and a default number of attempts per task."""

    name: str
    tasks: Mapping[str, Task]
    splits: Splits
    k: int = 3

    def __post_init__(self) -> None:
        """Refuse splits that name unknown tasks."""
        for name in ("search", "validation", "test"):
            missing = [t for t in getattr(self.splits, name) if t not in self.tasks]
            if missing:
                raise TaskError(f"split {name} of suite {self.name}", "known tasks", missing[0])

    def split(self, name: str) -> tuple[Task, ...]:
        """The tasks of ``"search"``, ``"validation"`` or ``"test"``, in split order."""
        return tuple(self.tasks[task_id] for task_id in getattr(self.splits, name))
