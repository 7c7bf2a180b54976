"""Thin adapters between what the rooms offer and what the runtime's Protocols ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from milo.core.attempt import AttemptKey, Outcome, Usage
from milo.core.events import Event, Record
from milo.core.evidence import Trace
from milo.core.harness import Harness
from milo.core.ports import Command, EnvironmentSpec, Exit, Sandbox
from milo.core.task import Limits
from milo.core.tree import FileTree
from milo.store.run_store import RunStore


class StoreRecords:
    """Implements the runtime's `Records` on a `RunStore`."""

    def __init__(self, store: RunStore) -> None:
        self._store = store

    def claim(self, shard: str) -> int:
        """A new epoch for a shard."""
        return self._store.claim(shard)

    def append(self, shard: str, epoch: int, events: Sequence[Event]) -> tuple[Record, ...]:
        """Durable, all or none."""
        return self._store.append(shard, epoch, events)

    def records(self, from_seq: int = 0) -> Iterable[Record]:
        """The journal."""
        return self._store.records(from_seq)

    def append_attempts(self, outcomes: Sequence[Outcome]) -> None:
        """Durable; idempotent by key."""
        self._store.attempts.append(outcomes)

    def lookup(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Outcome]:
        """Valid outcomes on record."""
        return self._store.attempts.lookup(keys)

    def spent_by_attempts(self) -> tuple[int, Usage]:
        """Attempts on record and their usage."""
        return self._store.attempts.count, self._store.attempts.spent()

    def put_trace(self, trace: Trace) -> str:
        """Store by content."""
        return self._store.traces.put(trace)

    def get_trace(self, digest: str) -> Trace:
        """A stored trace."""
        return self._store.traces.get(digest)

    def put_session(self, scope: str, trace: Trace) -> None:
        """Keep a session's exchanges."""
        self._store.sessions.put(scope, self._store.traces.put(trace))

    def put_harness(
        self, candidate: str, harness: Harness, parents: Sequence[str], message: str
    ) -> None:
        """Commit a candidate on its island's branch."""
        island = candidate.partition(".")[0]
        self._store.harnesses.put(
            candidate, harness, island=island, parents=tuple(parents), message=message
        )

    def get_harness(self, candidate: str) -> Harness:
        """A candidate's harness."""
        return self._store.harnesses.get(candidate)

    def close(self) -> None:
        """Release the run directory."""
        self._store.close()


class SandboxShell:
    """Runs a command in a sandboxed copy of a tree, without a network: a mutator's shell."""

    def __init__(self, sandbox: Sandbox, owner: str) -> None:
        self._sandbox = sandbox
        self._owner = owner

    async def __call__(
        self, tree: FileTree, command: str, timeout_s: float
    ) -> tuple[Exit, FileTree]:
        """How it ended, and the tree as it left it."""
        spec = EnvironmentSpec(workspace=tree, mounts={}, limits=Limits(), owner=self._owner)
        environment = await self._sandbox.open(spec)
        try:
            ended = await environment.run(
                Command(argv=("/bin/sh", "-c", command), timeout_s=timeout_s)
            )
            return ended, await environment.workspace()
        finally:
            await environment.close()
