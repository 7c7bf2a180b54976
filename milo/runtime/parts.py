"""What the runtime is given and what its pieces offer each other.

The runtime knows no adapter: stores, hosts, mutators and orchestrators come from `Parts`, a
picklable factory that `app` composes and that each process calls for itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from milo.core.attempt import AttemptKey, Outcome, Usage
from milo.core.budget import Spend
from milo.core.calls import Purse
from milo.core.errors import ClusterError
from milo.core.events import Event, Record
from milo.core.evidence import Evidence, Exchange, ParentView
from milo.core.fitness import TaskScore
from milo.core.harness import Harness
from milo.core.moves import Consultation, Move
from milo.core.plan import RunPlan
from milo.core.ports import AttemptResult, AttemptRunner, Exit, Mutator, Orchestrator
from milo.core.servers import ModelServer, ServerDemand
from milo.core.task import Suite, Task
from milo.core.tree import FileTree
from milo.runtime.keeping import Records as Records  # noqa: PLC0414
from milo.runtime.keeping import Replay as Replay  # noqa: PLC0414


class PeerLost(ClusterError):
    """A piece in another process died: a host (its attempts run elsewhere), or an actor."""


LIMIT = "limit:"
"""How the reason begins of search work that a spent limit of the run cut."""


class SearchStopped(ClusterError):
    """Queued and running search attempts were cut; `reason` says by what."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)

    def __reduce__(self) -> tuple[type[SearchStopped], tuple[str]]:
        """Survive pickling between processes."""
        return (SearchStopped, (self.reason,))


# --- what app composes ---------------------------------------------------------------------------


class ModelCaller(Protocol):
    """Calls some model for a mutator or the orchestrator."""

    async def __call__(
        self,
        scope: str,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]] = (),
    ) -> tuple[str, Usage, tuple[Exchange, ...]]:
        """The reply's text, what it cost, and the exchanges for the record, the answer last."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class HostParts:
    """What one container host works with. `close` ends servers, sandboxes and scratch."""

    runner: AttemptRunner
    model: str
    description: str
    shell: Callable[[FileTree, str, float], Awaitable[tuple[Exit, FileTree]]]
    close: Callable[[], Awaitable[None]]


class Sweeper(Protocol):
    """Clears up after processes of a run that died; picklable into a process without Ray."""

    async def sweep(self) -> int:
        """Remove what they left on this machine, and nothing of the living; how many things."""
        ...


class Parts(Protocol):
    """Factories for everything that is no runtime; picklable, called once per process."""

    @property
    def plan(self) -> RunPlan:
        """The run's plan."""
        ...

    def funded(self, purse: Purse) -> Parts:
        """The same factories, whose model calls are paid from this purse."""
        ...

    def server_demand(self) -> ServerDemand | None:
        """What the model servers of the run take of the cluster; None where it starts none."""
        ...

    def model_server(self, host: str, nth: int) -> ModelServer:
        """One replica, not started yet, on an address of this node."""
        ...

    def served(self, servers: Sequence[ModelServer]) -> Parts:
        """The same factories, with the run's model servers to call."""
        ...

    def suite(self) -> Suite:
        """The tasks and their splits."""
        ...

    def open_records(self) -> Records:
        """The run directory, opened for writing."""
        ...

    async def open_host(self, name: str) -> HostParts:
        """Sandbox, gateway and runner of one node; raises `MiloError` where it can't be had."""
        ...

    def sweeper(self) -> Sweeper:
        """What clears up on a machine of the run."""
        ...

    def mutator(self, name: str) -> Mutator:
        """A mutator of the pool."""
        ...

    def model_caller(self, mutator: str) -> ModelCaller:
        """The model behind a mutator or ``"orchestrator"``."""
        ...

    def orchestrator(self, caller: ModelCaller) -> Orchestrator:
        """The orchestrator."""
        ...

    def replay(self) -> Replay | None:
        """The recording that is replayed, if any."""
        ...

    def secrets(self) -> Collection[str]:
        """What may stand in no record: the keys that this process's environment holds."""
        ...

    def now(self) -> float:
        """Seconds since the epoch."""
        ...


# --- what the pieces offer each other ------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationRequest:
    """Score one candidate on tasks. `reservation` is the ledger promise that pays for it."""

    island: str
    candidate: str
    harness: Harness
    split: str
    tasks: tuple[str, ...]
    k: int
    reservation: str = ""
    replicate: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationResult:
    """Per-task scores, and the tasks that have no valid attempt."""

    scores: Mapping[str, TaskScore]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Doing:
    """What an island is at, for the live view."""

    island: str
    what: str
    candidate: str = ""
    parent: str = ""
    done: int = 0
    wanted: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """The dispatcher at one moment: slots, queue, islands, mean seconds per attempt.

    `deadline` is when search work ends (seconds since the epoch), None where time is not limited;
    `troubles` are what the run waits out, in words.
    """

    busy: int
    slots: int
    queued: int
    doing: tuple[Doing, ...] = ()
    mean_attempt_s: float = 0.0
    tokens: int = 0
    attempts: int = 0
    deadline: float | None = None
    troubles: tuple[str, ...] = ()


class HostPort(Protocol):
    """One container host, local or in another process. Raises `PeerLost` when it is gone."""

    name: str

    async def run(self, key: AttemptKey, harness: Harness, task: Task) -> AttemptResult:
        """One attempt."""
        ...

    async def smoke(self, harness: Harness) -> str:
        """ "" or the error of the smoke test."""
        ...

    async def shell(self, tree: FileTree, command: str, timeout_s: float) -> tuple[Exit, FileTree]:
        """A command in a copy of a tree."""
        ...


class RecorderPort(Protocol):
    """The recorder: journal, attempts, traces, harnesses and ledger behind one owner."""

    async def claim(self, shard: str) -> int:
        """A new epoch for a shard."""
        ...

    async def append(self, shard: str, epoch: int, events: Sequence[Event]) -> None:
        """Append and publish."""
        ...

    async def watch(self, after_seq: int, timeout_s: float) -> Sequence[Record]:
        """Records after a sequence number; waits up to the time-out for the first."""
        ...

    async def island_events(self, island: str) -> tuple[Sequence[Event], Sequence[Event]]:
        """An island's own events, and those of foreign candidates that it refers to."""
        ...

    async def history(self, candidates: Sequence[str]) -> Sequence[Event]:
        """The events that made candidates and their ancestors."""
        ...

    async def pending_moves(self, island: str) -> tuple[Move, ...]:
        """Moves that wait for this island's next round."""
        ...

    async def known(self, keys: Sequence[AttemptKey]) -> Mapping[AttemptKey, Outcome]:
        """Valid outcomes on record."""
        ...

    async def durations(self) -> Mapping[str, tuple[int, float]]:
        """By task: how many attempts are on record, and their mean seconds."""
        ...

    async def record(self, results: Sequence[AttemptResult], reservations: Sequence[str]) -> None:
        """Store traces and outcomes and draw them from the ledger."""
        ...

    async def put_harness(
        self,
        shard: str,
        epoch: int,
        candidate: str,
        harness: Harness,
        parents: Sequence[str],
        message: str,
    ) -> None:
        """Commit a candidate; raises `StaleWriter` where another owner writes the shard now."""
        ...

    async def get_harness(self, candidate: str) -> Harness:
        """A candidate's harness."""
        ...

    async def parent_view(
        self, candidate: str, tasks: Sequence[str], k: int, limit: int
    ) -> ParentView:
        """A parent with its evidence on these tasks, failures first, at most `limit` attempts."""
        ...

    async def evidence(
        self, harness: str, tasks: Sequence[str], k: int, limit: int
    ) -> tuple[Evidence, ...]:
        """Attempts of a harness (content hash) on these search tasks, failures first."""
        ...

    async def put_session(self, scope: str, exchanges: Sequence[Exchange]) -> None:
        """Keep a session's model calls."""
        ...

    async def reserve(self, name: str, amount: Spend) -> None:
        """Promise; raises `BudgetExceeded`."""
        ...

    async def settle(self, name: str, role: str, usage: Usage) -> None:
        """Close a promise with what was spent beside the attempts already drawn."""
        ...

    async def reserve_call(self, call: str, role: str, scope: str, amount: Spend) -> None:
        """As `core.calls.Purse` says."""
        ...

    async def settle_call(self, call: str, amount: Spend) -> None:
        """As `core.calls.Purse` says."""
        ...

    async def forsake(self, scope: str) -> None:
        """Whoever made the model calls of a scope is gone: those in flight stay unsettled."""
        ...

    async def refused(self) -> str:
        """The limit that refused a model call; "" where none did."""
        ...

    async def trouble(self, who: str, words: str) -> None:
        """What somebody waits out now; "" once that is over."""
        ...

    async def troubles(self) -> tuple[str, ...]:
        """Everything that is waited out now, in words."""
        ...

    async def spend(self) -> Mapping[str, Spend]:
        """Spent so far, by role."""
        ...

    async def remaining(self) -> Mapping[str, float | None]:
        """Neither spent nor promised, by limit; None where unlimited."""
        ...


class DispatcherPort(Protocol):
    """The one pool of slots over all hosts."""

    async def evaluate(self, request: EvaluationRequest) -> EvaluationResult:
        """Known attempts are reused, the rest is run; raises `SearchStopped`."""
        ...

    async def smoke(self, harness: Harness) -> str:
        """A smoke test on some host."""
        ...

    async def shell(self, tree: FileTree, command: str, timeout_s: float) -> tuple[Exit, FileTree]:
        """A command in a copy of a tree on some host."""
        ...

    async def note(self, doing: Doing) -> None:
        """What an island is at."""
        ...

    async def load(self) -> Load:
        """The present load."""
        ...

    async def set_deadline(self, deadline: float | None) -> None:
        """When search work will end, as far as can be told now."""
        ...

    async def stopped(self) -> str:
        """Waits until search work is cut; why."""
        ...

    async def stop(self, reason: str, *, drain: bool = False) -> None:
        """Refuse and cut search work; with `drain`, let running attempts end."""
        ...


class ConductorPort(Protocol):
    """The orchestrator behind its actor."""

    async def consult(self, island: str, round_: int) -> Consultation:
        """The answer for a stalled island; the recorded one where there is one."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Peers:
    """The pieces that an island talks to."""

    recorder: RecorderPort
    dispatcher: DispatcherPort
    conductor: ConductorPort
