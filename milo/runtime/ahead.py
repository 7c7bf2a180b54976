"""Children of later rounds, made while earlier ones are scored (`strategy.pipeline_depth`).

The island stays a machine that takes one child a round, in order: everything it decides, and the
journal, are as without a pipeline, but that each child was proposed from the lineage of some
rounds before. A child is conceived at a boundary, on a copy of the island as it stands there; its
own shell has the mutator propose, and what that would record is kept until the child's round has
come. Its search attempts are begun at once: they are recorded as any others, so when the island
asks for its scores they are known.

How far ahead is fixed, not a matter of timing: the child of round r is conceived at the boundary
of round r - window + 1, so that a replay, or a resume that has only the records, shows each
proposer the same lineage again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from milo.core.attempt import Usage
from milo.core.errors import MiloError
from milo.core.events import CandidateProposed, Event
from milo.core.harness import Harness
from milo.runtime.affording import promise_of
from milo.runtime.island_shell import Shell
from milo.runtime.nursery import Made
from milo.runtime.parts import (
    LIMIT,
    DispatcherPort,
    Doing,
    EvaluationRequest,
    Peers,
    RecorderPort,
    Replay,
    SearchStopped,
)
from milo.search.island import Closed, Island, NeedChild

MakeShell = Callable[[Island, Peers], Shell]


def window_of(depth: int) -> int:
    """Children of an island without a verdict at most.

    Those proposed, as many scored, and half as many whose records are being written or whose turn
    has not come: without these, slots wait a little for each verdict.
    """
    return 1 if depth == 1 else 5 * depth // 2


class Ahead:
    """Implements `Nursery` for one island. One owner, one event loop.

    `shell_of` makes the shell of a child in the making; `own` and `foreign` are the island's
    events as they were restored.
    """

    def __init__(
        self,
        shell_of: MakeShell,
        peers: Peers,
        replay: Replay | None,
        own: Sequence[Event] = (),
        foreign: Sequence[Event] = (),
    ) -> None:
        self._shell_of = shell_of
        self._peers = peers
        self._replay = replay
        self._own = tuple(own)
        self._foreign = tuple(foreign)
        self._thinking: asyncio.Semaphore | None = None
        self._made: dict[int, asyncio.Task[Made]] = {}
        self._scored: dict[int, asyncio.Task[None]] = {}
        self._promises: dict[int, str] = {}
        self.refusal = ""

    def __contains__(self, round_: int) -> bool:
        """Whether the child of this round is in the making, or made."""
        return round_ in self._made

    async def child(self, island: Island, need: NeedChild) -> Made:
        """The child of this round; those of the rounds in the window are conceived first."""
        await self._forget(need.round)
        for round_ in range(need.round, self._last(island, need.round) + 1):
            if round_ not in self._made and not self.refusal:
                await self._conceive(island, round_, need.round)
        # What the next rounds need is from here on conceived at their own boundaries.
        self._own = self._foreign = ()
        return await asyncio.shield(self._made[need.round])

    async def _forget(self, round_: int) -> None:
        """What was kept for the rounds before this one, which are over."""
        for number in [earlier for earlier in self._made if earlier < round_]:
            del self._made[number]
            self._scored.pop(number).cancel()
            await self._peers.recorder.settle(self._promises.pop(number), "target", Usage())

    def _last(self, island: Island, round_: int) -> int:
        """The last round whose child may be conceived now."""
        setup = island.setup
        last = round_ + window_of(setup.strategy.pipeline_depth) - 1
        if setup.rounds is not None:
            last = min(last, setup.rounds)
        closed = self._replay.closed(setup.island) if self._replay is not None else None
        if self._replay is not None and closed is not None:
            last = min(last, max(closed[0], self._replay.begun(setup.island)))
        return max(last, round_)

    async def _conceive(self, island: Island, round_: int, present: int) -> None:
        """Begin the child of a round on what its boundary showed, if it can be afforded."""
        then = self._at_boundary(island, round_, present)
        twin = then.foresee(round_)
        notes = Kept(self._peers.recorder)
        peers = replace(
            self._peers,
            recorder=cast(RecorderPort, notes),
            dispatcher=cast(DispatcherPort, Unnoted(self._peers.dispatcher)),
        )
        shell = self._shell_of(twin, peers)
        if round_ != present and self._replay is None:
            self.refusal = await shell.affording.reserve()
            if self.refusal:  # what is in the making is finished; nothing more is begun
                return
        self._promises[round_] = promise_of(twin)
        self._made[round_] = making = asyncio.create_task(self._make(shell, twin, notes))
        self._scored[round_] = asyncio.create_task(self._score(twin, making))

    def _at_boundary(self, island: Island, round_: int, present: int) -> Island:
        """The island at the boundary where a child belongs; an earlier one is folded again."""
        places = {
            event.round: place
            for place, event in enumerate(self._own)
            if isinstance(event, CandidateProposed) and event.parents
        }
        window = window_of(island.setup.strategy.pipeline_depth)
        boundary = max(min(places, default=present), round_ - window + 1)
        if boundary >= present:
            return island
        return Island.restore(island.setup, self._own[: places[boundary]], self._foreign)

    async def _make(self, shell: Shell, twin: Island, notes: Kept) -> Made:
        """Propose until there is a child."""
        shell.thinking = self._room(twin)
        while (proposal := notes.proposal) is None:
            await self._propose(shell, twin)
        return Made(
            events=tuple(notes.events),
            proposal=proposal,
            harness=notes.harness,
            message=notes.message,
        )

    async def _propose(self, shell: Shell, twin: Island) -> None:
        match twin.ask():
            case NeedChild() as need:
                await shell.make_child(need)
            case Closed(reason=reason):
                raise SearchStopped(f"{LIMIT} {reason}")
            case other:
                raise AssertionError(f"a child in the making asks for {other}")

    def _room(self, twin: Island) -> asyncio.Semaphore:
        """For as many mutators at once as the plan says; what surrounds them is cheap."""
        if self._thinking is None:
            self._thinking = asyncio.Semaphore(twin.setup.strategy.pipeline_depth)
        return self._thinking

    async def _score(self, twin: Island, making: asyncio.Task[Made]) -> None:
        """Have a child's search attempts made as soon as there is one.

        The island asks for the same child and the same attempts: it is who meets any fault.
        """
        with contextlib.suppress(MiloError):
            made = await making
            if made.harness is not None:
                await self._peers.dispatcher.evaluate(
                    EvaluationRequest(
                        island=twin.setup.island,
                        candidate=made.proposal.candidate,
                        harness=made.harness,
                        split="search",
                        tasks=twin.state.search,
                        k=twin.setup.k,
                        reservation=promise_of(twin),
                    )
                )

    async def close(self) -> None:
        """End what is in the making and give back what was promised for it."""
        tasks = [*self._made.values(), *self._scored.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for promise in self._promises.values():
            await self._peers.recorder.settle(promise, "target", Usage())
        self._promises.clear()


class Kept:
    """The recorder as a child in the making has it: what it would write is kept for its turn."""

    def __init__(self, recorder: RecorderPort) -> None:
        self._recorder = recorder
        self.events: list[Event] = []
        self.proposal: CandidateProposed | None = None
        self.harness: Harness | None = None
        self.message = ""

    async def append(self, shard: str, epoch: int, events: Sequence[Event]) -> None:
        """Keep refused proposals, and the one that was taken."""
        self.events.extend(events)
        for event in events:
            if isinstance(event, CandidateProposed):
                self.proposal = event

    async def put_harness(
        self,
        shard: str,
        epoch: int,
        candidate: str,
        harness: Harness,
        parents: Sequence[str],
        message: str,
    ) -> None:
        """Keep the child."""
        self.harness, self.message = harness, message

    def __getattr__(self, name: str) -> Any:
        """Everything else is the recorder's."""
        return getattr(self._recorder, name)


class Unnoted:
    """The dispatcher, without word of what is made ahead: the live view shows the island's turn."""

    def __init__(self, dispatcher: DispatcherPort) -> None:
        self._dispatcher = dispatcher

    async def note(self, doing: Doing) -> None:
        """Nothing."""

    def __getattr__(self, name: str) -> Any:
        """Everything else is the dispatcher's."""
        return getattr(self._dispatcher, name)
