"""The bench: what a mutator may do besides editing (`Workshop`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from milo.core.attempt import Usage
from milo.core.errors import (
    ClusterError,
    ConfigError,
    DiskFull,
    HarnessError,
    MiloError,
    ModelError,
    ModelUnavailable,
    RecordError,
    ReplayMiss,
)
from milo.core.evidence import Brief, Exchange, Proposal
from milo.core.harness import Harness
from milo.core.peering import Measured
from milo.core.ports import Exit, Mutator, SessionReport
from milo.core.tree import FileTree
from milo.runtime.outage import Outage
from milo.runtime.parts import ModelCaller, Parts, Peers
from milo.search.patch_judge import question, refusal_in

Answer = tuple[str, Usage, tuple[Exchange, ...]]
NOT_THE_MUTATORS = (ReplayMiss, ModelUnavailable, ClusterError, RecordError, DiskFull, ConfigError)
"""What ends a proposal and says nothing about it."""


async def judged(parts: Parts, bench: Bench, patch: str) -> str:
    """Why the model judge refuses a patch; "" where it doesn't, or where there is none."""
    judge = parts.plan.agents.judge
    if not judge:
        return ""
    beside = bench.beside("judge", parts.model_caller(f"judge:{judge}"))
    try:
        answer, _ = await beside.complete(question(patch))
    except (ReplayMiss, ModelUnavailable):
        raise
    except ModelError:
        return ""
    finally:
        await beside.keep()
        bench.judging = bench.judging + beside.usage
    return refusal_in(answer)


class Bench:
    """What a mutator may do (`MeasuringWorkshop`): smoke tests, a sandboxed shell, its own model,
    and scores of trees, where `measuring` is set. `outage` waits out what its model's provider
    fails in; the recorder is told."""

    measuring: Callable[[FileTree, Sequence[str]], Awaitable[Measured]] | None = None

    def __init__(self, peers: Peers, caller: ModelCaller, scope: str) -> None:
        self._peers = peers
        self._caller = caller
        self.scope = scope
        self._exchanges: list[Exchange] = []
        self.outage = Outage(self._say)
        self.usage = Usage()
        self.judging = Usage()

    def beside(self, name: str, caller: ModelCaller) -> Bench:
        """A bench for somebody else who works on the same child, under a scope of their own."""
        return Bench(self._peers, caller, f"{self.scope}/{name}")

    async def smoke(self, tree: FileTree) -> str:
        """ "" if the tree is a valid harness whose smoke test passes, else the error."""
        try:
            harness = Harness.from_tree(tree, "the child")
        except HarnessError as error:
            return str(error)
        return await self._peers.dispatcher.smoke(harness)

    async def measure(self, tree: FileTree, tasks: Sequence[str]) -> Measured:
        """A tree's scores on search tasks."""
        if self.measuring is None:
            return Measured(refusal="nothing is measured here")
        return await self.measuring(tree, tasks)

    async def complete(self, messages: Sequence[Mapping[str, object]]) -> tuple[str, Usage]:
        """One call to the mutator's model; its exchange is kept for the record.

        A provider that is down is waited for; raises `outage.ModelGone` where that is in vain.
        """
        text, usage, _ = await self._kept(lambda: self._caller(self.scope, messages))
        return text, usage

    async def converse(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]]
    ) -> tuple[Mapping[str, object], Usage]:
        """As `complete`, with tools offered; the model's message."""
        answer = await self._kept(lambda: self._caller(self.scope, messages, tools))
        text, usage, exchanges = answer
        message = exchanges[-1].message if exchanges else {"role": "assistant", "content": text}
        return message, usage

    async def _kept(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of a call, which is counted; one that was refused is kept too."""
        try:
            answer = await self.outage.outlast(call)
        except ModelError as failed:
            self._exchanges.extend(failed.exchanges)
            raise
        self._exchanges.extend(answer[2])
        self.usage = self.usage + answer[1]
        return answer

    def add(self, report: SessionReport) -> None:
        """Count and keep what a mutator's own session came to."""
        self._exchanges.extend(report.exchanges)
        self.usage = self.usage + report.usage

    async def shell(self, tree: FileTree, command: str, timeout_s: float) -> tuple[Exit, FileTree]:
        """A command in a sandboxed copy of the tree."""
        return await self._peers.dispatcher.shell(tree, command, timeout_s)

    async def _say(self, words: str) -> None:
        await self._peers.recorder.trouble(self.scope, words)

    async def keep(self) -> None:
        """Put the session on record, so that a replay can answer it."""
        if self._exchanges:
            await self._peers.recorder.put_session(self.scope, self._exchanges)
            self._exchanges = []


class MutatorFailed(MiloError):
    """A mutator raised something that is no error of MILO's."""


async def proposed_by(mutator: Mutator, brief: Brief, bench: Bench) -> Proposal:
    """The mutator's proposal; what a user's mutator raises becomes `MutatorFailed`."""
    try:
        made = await mutator.propose(brief, bench)
        if not isinstance(made, Proposal):
            raise MutatorFailed(f"{mutator.name} gave {type(made).__name__}, not a Proposal")
        return made
    except MiloError:
        raise
    except Exception as error:  # the boundary to the user's code: its fault is its child's
        raise MutatorFailed(f"{mutator.name}: {type(error).__name__}: {error}") from error
