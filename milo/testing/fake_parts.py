"""A composition of fakes: what `app` composes from adapters, here from memory and landscapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from milo.core.attempt import AttemptKey, Outcome, Usage
from milo.core.calls import Purse
from milo.core.errors import ModelError
from milo.core.events import MoveApplied, MoveVoided, ProposalSentBack
from milo.core.evidence import Exchange
from milo.core.moves import Consultation, Move
from milo.core.plan import RunPlan
from milo.core.population import Population
from milo.core.ports import Exit, Mutator, Orchestrator
from milo.core.servers import ModelServer, ServerDemand
from milo.core.task import Suite
from milo.core.tree import FileTree
from milo.testing.landscape import LandscapeRunner
from milo.testing.memory_records import MemoryRecords


class ManualClock:
    """Time that moves only when it is told to."""

    def __init__(self, now: float = 0.0) -> None:
        self.time = now

    def __call__(self) -> float:
        """The time."""
        return self.time


async def no_model(
    scope: str, messages: Sequence[Mapping[str, object]]
) -> tuple[str, Usage, tuple[Exchange, ...]]:
    """A model caller where there is no model."""
    raise ModelError(f"{scope}: there is no model in this test")


@dataclass(kw_only=True)
class FakeParts:
    """Implements the runtime's `Parts` for one process; everything is handed in.

    `host_parts` builds what `open_host` returns (the runtime's HostParts, which this room may not
    import) from a runner, a model name, a description, a shell and a close function.
    """

    plan: RunPlan
    the_suite: Suite
    records: MemoryRecords
    runner: LandscapeRunner
    mutators: Mapping[str, Mutator]
    the_orchestrator: Orchestrator
    host_parts: Any
    recording: Any = None
    clock: ManualClock = field(default_factory=ManualClock)
    the_secrets: tuple[str, ...] = ()

    def funded(self, purse: Purse) -> FakeParts:
        """The same: these fakes call no model."""
        return self

    def server_demand(self) -> ServerDemand | None:
        """No model server."""
        return None

    def model_server(self, host: str, nth: int) -> ModelServer:
        """There is none."""
        raise ModelError("there is no model server in this test")

    def served(self, servers: Sequence[ModelServer]) -> FakeParts:
        """The same."""
        return self

    def suite(self) -> Suite:
        """The suite."""
        return self.the_suite

    def open_records(self) -> MemoryRecords:
        """The records, which outlive any one writer."""
        return self.records

    async def open_host(self, name: str) -> Any:
        """A host around the runner."""

        async def shell(tree: FileTree, command: str, timeout_s: float) -> tuple[Exit, FileTree]:
            return Exit(code=127, seconds=0.0, stderr="no shell here"), tree

        async def close() -> None:
            return None

        return self.host_parts(
            runner=self.runner, model="landscape", description="fake", shell=shell, close=close
        )

    def sweeper(self) -> FakeParts:
        """Nothing is ever left."""
        return self

    async def sweep(self) -> int:
        """Nothing to remove."""
        return 0

    def mutator(self, name: str) -> Mutator:
        """A mutator by name."""
        return self.mutators[name]

    def model_caller(self, mutator: str) -> Any:
        """No model."""
        return no_model

    def orchestrator(self, caller: Any) -> Orchestrator:
        """The orchestrator."""
        return self.the_orchestrator

    def replay(self) -> Any:
        """The recording, if any."""
        return self.recording

    def secrets(self) -> tuple[str, ...]:
        """What may stand in no record."""
        return self.the_secrets

    def now(self) -> float:
        """The manual clock."""
        return self.clock()


class MemoryReplay:
    """Implements the runtime's `Replay` over finished memory records."""

    def __init__(self, records: MemoryRecords) -> None:
        self._records = records
        self._population = Population.of(records.records())

    def outcome(self, key: AttemptKey) -> Outcome | None:
        """The recorded outcome."""
        return self._records.outcomes.get(key)

    def exchanges(self, scope: str) -> tuple[Exchange, ...]:
        """The recorded model calls of a session."""
        trace = self._records.sessions.get(scope)
        return trace.exchanges if trace else ()

    def moves(self, island: str, round_: int) -> tuple[Move, ...]:
        """Moves applied to an island before a round, or void then."""
        settled = (r.event for r in self._records.records())
        moves = (e for e in settled if isinstance(e, MoveApplied | MoveVoided))
        return tuple(e.move for e in moves if (e.island, e.round) == (island, round_))

    def closed(self, island: str) -> tuple[int, str] | None:
        """When the island was closed."""
        state = self._population.topology.islands.get(island)
        return (state.round, state.closed) if state is not None and state.closed else None

    def begun(self, island: str) -> int:
        """The last round in which anything was decided on an island."""
        decided = MoveApplied | MoveVoided | ProposalSentBack
        events = [r.event for r in self._records.records()]
        rounds = [e.round for e in events if isinstance(e, decided) and e.island == island]
        return max((*rounds, *(n.round for n in self._population.lineage.of_island(island)), -1))

    def proposals(self, candidate: str) -> int:
        """Proposals recorded for a candidate."""
        if candidate in self._population.lineage:
            return self._population.lineage[candidate].tries
        events = (r.event for r in self._records.records())
        return sum(isinstance(e, ProposalSentBack) and e.candidate == candidate for e in events)

    def consultation(self, island: str, round_: int) -> Consultation | None:
        """The recorded answer."""
        return self._population.consultation(island, round_)
