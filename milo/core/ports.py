"""One page of Protocols: what each room offers the others. Implementations never inherit.

Concurrency: everything declared ``async`` may be called many times at once on one event loop;
everything else belongs to one owner. Values passed in and out are frozen; nobody mutates them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from milo.core.attempt import AttemptKey, Outcome, Usage
from milo.core.evidence import Brief, Exchange, Proposal, Trace
from milo.core.harness import Harness
from milo.core.lineage import Lineage
from milo.core.moves import Consultation
from milo.core.packages import Packages
from milo.core.population import PopulationView as PopulationView  # noqa: PLC0414
from milo.core.servers import ModelServer as ModelServer  # noqa: PLC0414
from milo.core.task import Limits, Reach, Setting, Task
from milo.core.tree import FileTree


class Clock(Protocol):
    """Time as an argument."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...


# --- rollout -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """What to run inside an environment. `gateway` says whether the model may be reached.

    `reach` is what it may reach beside, and `user` whom it runs as; None and "" are the
    environment's own. Arguments that name files of a mounted harness are made absolute by the
    environment. Output is captured up to `output_bytes` per stream, the rest is read and dropped.
    """

    argv: tuple[str, ...]
    timeout_s: float
    env: Mapping[str, str] = field(default_factory=dict)
    gateway: bool = False
    output_bytes: int = 64 * 1024
    reach: Reach | None = None
    user: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exit:
    """How a command ended. `limit` names the limit that fired ("" where none did)."""

    code: int
    seconds: float
    stdout: str = ""
    stderr: str = ""
    limit: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentSpec:
    """A fresh environment: the starting workspace, read-only mounts by absolute path, limits.

    `gateway_socket` is a unix socket of the host that appears as 127.0.0.1:`gateway_port` inside.
    `owner` labels everything that the environment leaves on its host, for the reaper. `folders` of
    the host are shown read-only at their own paths. `limits_addresses` is False for programs that
    reserve far more address space than they use, which a limit per process would only break.
    Commands start in `setting.workdir`, which is where the workspace lies: without an image it
    holds the workspace tree, with one what the image has there. `reach` is what commands may reach
    by default, `reaches` and `users` what some of them will ask for instead.
    """

    workspace: FileTree
    mounts: Mapping[str, FileTree]
    limits: Limits
    owner: str
    gateway_socket: Path | None = None
    gateway_port: int = 8765
    folders: tuple[Path, ...] = ()
    limits_addresses: bool = True
    setting: Setting = field(default_factory=Setting)
    reaches: tuple[Reach, ...] = ()
    users: tuple[str, ...] = ()

    @property
    def reach(self) -> Reach:
        """What commands may reach that ask for nothing else."""
        return Reach(network=self.limits.network, hosts=self.setting.hosts)


class Environment(Protocol):
    """One isolated folder and the right to run commands in it. Not for concurrent commands."""

    async def run(self, command: Command) -> Exit:
        """Run to the end or to the limit; when this returns, no process of it is alive."""
        ...

    async def workspace(self) -> FileTree:
        """The workspace as it is now (symlinks and special files left out)."""
        ...

    async def logs(self) -> FileTree:
        """The files below /logs, the one folder beside the workspace that commands may write."""
        ...

    async def clear_logs(self) -> None:
        """Empty /logs, so that nothing an earlier command left there is read as a result."""
        ...

    async def seal(self) -> tuple[str, ...]:
        """Remove from the workspace special files and links that lead out of it (links to the
        read-only system stay), so that files mounted later can't be reached by traps left
        earlier; the paths removed."""
        ...

    async def mount(self, path: str, tree: FileTree) -> None:
        """Put read-only files at an absolute path, visible to later commands, in place of whatever
        was mounted there before."""
        ...

    async def close(self) -> None:
        """Remove everything; safe to call twice."""
        ...


class Sandbox(Protocol):
    """Makes environments on one host."""

    @property
    def capabilities(self) -> frozenset[str]:
        """What it can enforce or provide: isolation, no-network, memory, pids, image-build, …"""
        ...

    @property
    def description(self) -> str:
        """One line for the terminal and the report, warnings included."""
        ...

    async def open(self, spec: EnvironmentSpec) -> Environment:
        """A fresh environment; raises `MiloError` where the host can't make one."""
        ...

    async def reap(self, owner: str) -> int:
        """Remove what a dead owner left on this host; the number of things removed."""
        ...


FindPackages = Callable[[Packages], Path | None]
"""Where a host holds installed packages; None where it hasn't just these."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptJob:
    """One attempt to run: everything that a container host needs."""

    key: AttemptKey
    harness: Harness
    task: Task


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptResult:
    """One attempt that ran: the outcome (its `trace` still empty) and what was seen."""

    outcome: Outcome
    trace: Trace


class AttemptRunner(Protocol):
    """Runs attempts on one host."""

    async def run(self, job: AttemptJob) -> AttemptResult:
        """Harness phase, then verifier; faults become statuses, only cancellation raises."""
        ...

    async def smoke(self, harness: Harness) -> str:
        """Run the manifest's setup and smoke commands; "" if they pass, else the error."""
        ...


# --- gateway -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Caps:
    """Per-session limits; None does not bind."""

    calls: int | None = None
    tokens: int | None = None
    output_tokens_per_call: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionReport:
    """What happened in a model session. `capped` names the cap that fired; `fault` the provider's
    failure that made the session useless ("" where none did)."""

    usage: Usage
    exchanges: tuple[Exchange, ...]
    capped: str = ""
    fault: str = ""
    flags: tuple[str, ...] = ()


class ModelSession(Protocol):
    """A scoped right to call the pinned model; dies when closed."""

    token: str

    async def close(self) -> SessionReport:
        """End the session (calls in flight are cut) and report it."""
        ...


class ModelGateway(Protocol):
    """The only way to the model, on one node. Speaks OpenAI chat completions and responses, and
    Anthropic messages."""

    @property
    def model(self) -> str:
        """The pinned model with its parameters, as attempt keys name it."""
        ...

    @property
    def socket(self) -> Path:
        """The unix socket that environments forward to."""
        ...

    async def open_session(self, scope: str, caps: Caps, deadline_s: float) -> ModelSession:
        """A session under a unique scope name (an attempt key, or a mutator's round)."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """An upstream's answer: HTTP status, the response body and the metered usage.

    `retry_after_s` is how long a provider that refuses asks to be left alone; 0 where it says
    nothing.
    """

    status: int
    body: Mapping[str, object]
    usage: Usage
    seconds: float
    retry_after_s: float = 0.0


class Upstream(Protocol):
    """A provider of one pinned model. `complete` raises `ModelError` when it can't be reached."""

    @property
    def model(self) -> str:
        """Model id and parameters in one stable string."""
        ...

    async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
        """Answer a chat-completions request; the `nth` call (from 0) of its scope."""
        ...

    async def check(self) -> Usage:
        """Prove with one small call that the model answers, and say what it cost; raises
        `ModelError`."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


Emit = Callable[[Mapping[str, object]], Awaitable[None]]
"""Takes one chunk of a chat completion, as soon as it is there."""


@runtime_checkable
class StreamingUpstream(Protocol):
    """An upstream that can also answer piece by piece."""

    async def stream(
        self, request: Mapping[str, object], scope: str, nth: int, emit: Emit
    ) -> Completion:
        """As `complete`, with each chunk given to `emit` first; the answer is the whole.

        Raises `ModelError` where the stream breaks off. A provider that answers in one piece
        after all gives `emit` nothing.
        """
        ...


# --- agents ------------------------------------------------------------------------------------


class Workshop(Protocol):
    """What a mutator may do besides editing: run the smoke test, and call a model.

    `usage` is what this proposal has spent so far, `scope` how records name its model calls. Who
    reaches the model by another way makes its calls under it, and gives them to `add` at the end.
    """

    usage: Usage
    scope: str

    async def smoke(self, tree: FileTree) -> str:
        """ "" if the tree is a valid harness whose smoke test passes, else the error."""
        ...

    async def complete(self, messages: Sequence[Mapping[str, object]]) -> tuple[str, Usage]:
        """One call to the mutator's own model, metered as `mutator`."""
        ...

    async def converse(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]]
    ) -> tuple[Mapping[str, object], Usage]:
        """As `complete`, with tools offered as chat completions declare them: the model's message,
        tool calls included. Raises `ModelRefused` where the provider refuses the request."""
        ...

    def add(self, report: SessionReport) -> None:
        """Count and record a session that the mutator had by another way."""
        ...

    async def shell(self, tree: FileTree, command: str, timeout_s: float) -> tuple[Exit, FileTree]:
        """Run a shell command in a sandboxed copy of the tree, without network."""
        ...


class Mutator(Protocol):
    """Rewrites a parent into a child."""

    @property
    def name(self) -> str:
        """As the pool names it."""
        ...

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """The child; judged by its tree. Raises `MiloError` where none could be made."""
        ...


class Orchestrator(Protocol):
    """Diagnoses a stalled island and proposes at most two moves."""

    async def consult(self, view: PopulationView, island: str) -> Consultation:
        """The checked answer; never raises for a refused move."""
        ...


# --- search parts ------------------------------------------------------------------------------


class ParentSelection(Protocol):
    """Chooses the parent of an island's next child."""

    def choose(
        self,
        members: Sequence[str],
        lineage: Lineage,
        tasks: Sequence[str],
        rng: np.random.Generator,
    ) -> str:
        """One of the members."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """Whether a child is admitted, why in words, its gain, and the bootstrap support."""

    admitted: bool
    reason: str
    gain: float = 0.0
    support: float = 0.0


# --- records -----------------------------------------------------------------------------------


class Tracker(Protocol):
    """Follows a run from its records: wandb and the like. One writer."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One point; `step` is the run's own and never repeats."""
        ...

    def finish(self, summary: Mapping[str, object]) -> None:
        """Close, with the final figures."""
        ...
