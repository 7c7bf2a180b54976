"""A task: an instruction, the folder it starts in, and a verifier that judges the folder left.

What is more than a folder and a script stands apart: `Setting` is the place where the task takes
place, `Judging` how it is judged, `Step` one part of a task that is set part by part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum

from milo.core.errors import TaskError
from milo.core.tree import FileTree


class Network(StrEnum):
    """What an environment may reach beside the gateway."""

    NONE = "no-network"
    ALLOWLIST = "allowlist"
    PUBLIC = "public"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """What a command may reach beside the gateway; where that is an allowlist, `hosts` alone:
    names, ``*.`` patterns for all below a name, addresses and CIDR ranges."""

    network: Network = Network.NONE
    hosts: tuple[str, ...] = ()


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


WORKSPACE = "/workspace"
LATER = ("user", "reach", "judge")
"""Fields that older records of a task don't know: unset, they are no part of its hash."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """The container image that a task starts in: pulled by `reference`, or built from `context`.

    The context holds the file `dockerfile`. A reference beside a context is a prebuilt copy.
    """

    reference: str = ""
    context: FileTree = field(default_factory=FileTree)
    dockerfile: str = "Dockerfile"
    build_timeout_s: float = 600.0

    @property
    def digest(self) -> str:
        """Content hash (hex): equal images are built or pulled once."""
        parts = (self.reference, self.context.digest, self.dockerfile)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Healthcheck:
    """A shell command that must exit 0 before the harness starts; container engines' own rules.

    Failures within the first `start_period_s` seconds do not count; `retries` in a row afterwards
    make the environment unusable.
    """

    command: str
    interval_s: float = 5.0
    timeout_s: float = 30.0
    start_period_s: float = 0.0
    start_interval_s: float = 5.0
    retries: int = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """Where a task takes place. `workdir` is the absolute folder in which commands start.

    Without an image the workspace is all there is; an empty `workdir` is the image's own. `hosts`
    may be reached where the network is an allowlist; `gpus` are wanted of one of `gpu_types` (any,
    where it is empty). The harness works as `user`, by name or number; "" is the image's own.
    """

    image: Image | None = None
    workdir: str = WORKSPACE
    hosts: tuple[str, ...] = ()
    gpus: int = 0
    gpu_types: tuple[str, ...] = ()
    healthcheck: Healthcheck | None = None
    user: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judging:
    """How a task is judged beyond its tests: variables of the verifier, and where it runs.

    `limits` stand in for the task's own while the verifier runs. A `separate` verifier runs in a
    fresh setting (`setting`, or the task's own start), which is given `artifacts`, files and
    folders by absolute path, and whatever lay in /logs/artifacts. A `bundled` verifier's image
    holds the tests at /tests already. `reach` is what the verifier may reach where that isn't what
    the harness may; it works as `user`. `judge` names the model that judges a task whose tests say
    so (``judge.json``), instead of a script.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    solution_env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits | None = None
    separate: bool = False
    bundled: bool = False
    setting: Setting | None = None
    artifacts: tuple[str, ...] = ()
    reach: Reach | None = None
    user: str = ""
    judge: str = ""


class StepReward(StrEnum):
    """How a task in steps is rewarded: by the mean over the steps done, or by the last of them."""

    MEAN = "mean"
    FINAL = "final"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One part of a task: what is added to the workspace, asked, and judged before the next.

    `files` are copied into the workspace; a ``setup.sh`` among them is run. A reward below any of
    `min_reward` (by reward key) ends the task.
    """

    name: str
    instruction: str
    files: FileTree = field(default_factory=FileTree)
    tests: FileTree = field(default_factory=FileTree)
    solution: FileTree = field(default_factory=FileTree)
    agent_timeout_s: float = 120.0
    verifier_timeout_s: float = 600.0
    verifier_env: Mapping[str, str] = field(default_factory=dict)
    min_reward: Mapping[str, float] = field(default_factory=dict)
    healthcheck: Healthcheck | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One task of a suite.

    `workspace` is what the environment starts with; `tests` enters only after the agent phase
    has ended; `solution` is the reference, run by `suite check` only. `needs` names sandbox
    capabilities (for instance ``"image-build"``) without which the task is refused. A task whose
    reward comes in steps declares `resolved_at`, the reward that counts as a full solve, and one
    whose verifier counts otherwise than from 0 to 1 its `reward_range`; the reward is the share of
    that range (`resolved_at` too). A task
    with `steps` has no tests or solution of its own, and its instruction is all of theirs.
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
    setting: Setting = field(default_factory=Setting)
    judging: Judging = field(default_factory=Judging)
    steps: tuple[Step, ...] = ()
    step_reward: StepReward = StepReward.MEAN
    reward_range: tuple[float, float] = (0.0, 1.0)

    @property
    def has_solution(self) -> bool:
        """Whether there is a reference solution to all of it."""
        return all(step.solution for step in self.steps) if self.steps else bool(self.solution)

    @property
    def reach(self) -> Reach:
        """What the harness may reach."""
        return Reach(network=self.limits.network, hosts=self.setting.hosts)

    @property
    def verifier_reach(self) -> Reach:
        """What the verifier may reach."""
        if self.judging.reach is not None or self.judging.limits is None:
            return self.judging.reach or self.reach
        setting = self.judging.setting or self.setting
        return Reach(network=self.judging.limits.network, hosts=setting.hosts)

    @property
    def digest(self) -> str:
        """Content hash over everything that can change an outcome.

        What a plain task leaves at its default is left out, so that its hash stays what it was.
        """
        parts = (
            self.instruction,
            self.workspace.digest,
            self.tests.digest,
            repr(sorted(self.env.items())),
            repr(self.limits),
            repr(self.resolved_at),
            *(_words(part) for part in (self.setting, self.judging) if part != type(part)()),
            *(_words(part) for part in (*self.steps, self.step_reward) if self.steps),
            *([repr(self.reward_range)] if self.reward_range != (0.0, 1.0) else []),
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _words(part: object) -> str:
    """A value in words that name every file by its content; solutions change no outcome."""
    if isinstance(part, FileTree):
        return part.digest
    if isinstance(part, Mapping):
        return repr(sorted(part.items()))
    if isinstance(part, tuple):
        return repr([_words(item) for item in part])
    if not is_dataclass(part):
        return repr(part)
    names = [f.name for f in fields(part) if f.name not in ("solution", "solution_env")]
    names = [name for name in names if name not in LATER or getattr(part, name)]
    return repr([type(part).__name__, *(_words(getattr(part, name)) for name in names)])


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
    """A named set of tasks with fixed splits and a default number of attempts per task.

    `left_out` says of each task that was found and not taken why it was not.
    """

    name: str
    tasks: Mapping[str, Task]
    splits: Splits
    k: int = 3
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse splits that name unknown tasks."""
        for name in ("search", "validation", "test"):
            missing = [t for t in getattr(self.splits, name) if t not in self.tasks]
            if missing:
                raise TaskError(f"split {name} of suite {self.name}", "known tasks", missing[0])

    def split(self, name: str) -> tuple[Task, ...]:
        """The tasks of ``"search"``, ``"validation"`` or ``"test"``, in split order."""
        return tuple(self.tasks[task_id] for task_id in getattr(self.splits, name))
