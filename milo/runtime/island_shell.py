"""The shell around the island state machine: it does what the machine asks and tells it back.

Every event that the machine decides is on record before anything is done on its ground. The
shell holds nothing that matters: a replacement restores the machine from its shard and goes on.
"""

from __future__ import annotations

import copy
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from milo.core.attempt import Usage
from milo.core.disclosure import Reader, shown_to
from milo.core.errors import (
    BudgetSpent,
    MiloError,
    ReplayMiss,
    SearchOver,
)
from milo.core.events import Event
from milo.core.evidence import Brief, ParentView, Proposal
from milo.core.harness import Harness, patch_between
from milo.core.moves import Graft, Move
from milo.core.peering import Engaged
from milo.core.ports import Mutator
from milo.core.redaction import redactor
from milo.core.task import Suite
from milo.core.touched import touched_between
from milo.core.tree import FileTree
from milo.runtime.affording import Affording, promise_of
from milo.runtime.bench import NOT_THE_MUTATORS, Bench, judged, proposed_by
from milo.runtime.cutting import GRACE_S, unless_stopped
from milo.runtime.measuring import Measuring
from milo.runtime.nursery import Nursery
from milo.runtime.parts import (
    LIMIT,
    Doing,
    EvaluationRequest,
    Parts,
    Peers,
    Replay,
    SearchStopped,
)
from milo.search.generality import GeneralityIndex
from milo.search.island import (
    Closed,
    Island,
    NeedChild,
    NeedConsultation,
    NeedRound,
    NeedScores,
)
from milo.search.preflight import Refusal, check_child
from milo.search.snapshot import build_snapshot

EVIDENCE_LIMIT = 96
LIBRARY_LIMIT = 24
POLL_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """What an island must know of the run's budget: attempts that a child costs at most."""

    attempts_per_child: int


class Shell:
    """Runs one island to its end. One owner, one event loop.

    Children come from the `nursery` where there is one; mutators work inside of `thinking`.
    """

    nursery: Nursery | None = None
    thinking: AbstractAsyncContextManager[None] = nullcontext()

    def __init__(self, island: Island, epoch: int, parts: Parts, peers: Peers, pace: Pace) -> None:
        self._island = island
        self._epoch = epoch
        self._parts = parts
        self._peers = peers
        self.affording = Affording(island, parts, peers, pace.attempts_per_child)
        self._suite: Suite = parts.suite()
        self._replay: Replay | None = parts.replay()
        splits = self._suite.splits
        self._generality = GeneralityIndex(
            tuple(self._suite.tasks.values()), held_out=(*splits.validation, *splits.test)
        )
        self._redactor = redactor(parts.secrets())
        self._engaged: dict[str, Engaged] = {}

    @property
    def name(self) -> str:
        """The island's id."""
        return self._island.setup.island

    def beside(self, island: Island, peers: Peers) -> Shell:
        """A shell for a child in the making: what this one was built with, around a copy."""
        twin = copy.copy(self)
        twin._island, twin._peers, twin.nursery = island, peers, None
        twin.affording = self.affording.beside(island, peers)
        return twin

    async def run(self) -> str:
        """Advance generation by generation until the island is closed; the reason.

        Raises `SearchStopped` when the run is stopped without closing the island.
        """
        await self._record(self._island.settle())
        in_a_round = not isinstance(self._island.ask(), NeedRound | Closed)
        if in_a_round and self._replay is None and self._island.state.round >= 0:
            await self.affording.reserve_again()  # what a restored round may still cost
        while True:
            need = self._island.ask()
            match need:
                case Closed(reason=reason):
                    promise = promise_of(self._island)
                    await self._peers.recorder.settle(promise, "target", Usage())
                    return reason
                case NeedScores():
                    await self._score(need)
                case NeedRound(round=number):
                    await self._begin(number)
                case NeedChild():
                    await self.make_child(need)
                case NeedConsultation(round=number):
                    await self._note("consulting the orchestrator")
                    await self._unless_stopped(self._consult(number), GRACE_S)

    async def _record(self, events: Sequence[Event]) -> None:
        await self._peers.recorder.append(self.name, self._epoch, events)

    async def _keep(
        self, candidate: str, harness: Harness, parents: Sequence[str], message: str
    ) -> None:
        await self._peers.recorder.put_harness(
            self.name, self._epoch, candidate, harness, parents, message
        )

    async def _note(self, what: str, candidate: str = "", parent: str = "") -> None:
        await self._peers.dispatcher.note(
            Doing(island=self.name, what=what, candidate=candidate, parent=parent)
        )

    # --- scoring ----------------------------------------------------------------------------

    async def _score(self, need: NeedScores) -> None:
        await self._note(f"scoring on {need.split}", need.candidate)
        harness = await self._peers.recorder.get_harness(need.candidate)
        try:
            result = await self._peers.dispatcher.evaluate(
                EvaluationRequest(
                    island=self.name,
                    candidate=need.candidate,
                    harness=harness,
                    split=need.split,
                    tasks=need.tasks,
                    k=need.k,
                    reservation=promise_of(self._island),
                )
            )
        except SearchStopped as stop:
            await self._stopped(stop)
            return
        except ReplayMiss:
            if not await self._close_as_recorded():
                raise
            return
        events = self._island.scored(need.candidate, need.split, result.scores, result.missing)
        await self._record(events)

    async def _stopped(self, stop: SearchStopped) -> None:
        """A spent limit closes the island for good; an interruption leaves it open."""
        if not stop.reason.startswith(LIMIT):
            raise stop
        await self._close(stop.reason.removeprefix(LIMIT).strip())

    async def _unless_stopped(self, work: Coroutine[Any, Any, None], grace_s: float = 0.0) -> None:
        try:
            await unless_stopped(work, self._peers.dispatcher, grace_s)
        except SearchStopped as stop:
            await self._stopped(stop)

    async def _close_as_recorded(self) -> bool:
        """Close where the recorded island was cut in the middle of a round; whether it was."""
        closed = self._replay.closed(self.name) if self._replay is not None else None
        if closed is None or self._island.state.round < closed[0]:
            return False
        await self._close(closed[1])
        return True

    async def _close(self, reason: str) -> None:
        await self._record(self._island.close(reason))

    # --- the round boundary -------------------------------------------------------------------

    async def _begin(self, number: int) -> None:
        """Apply the moves that wait, then reserve what a child will cost; close if it can't be."""
        if self._replay is not None:
            await self._begin_as_recorded(self._replay, number)
            return
        if self.nursery is None or number not in self.nursery:
            refused = "" if self.nursery is None else self.nursery.refusal
            refused = refused or await self.affording.reserve()
            if refused:
                await self._close(refused)
                return
        await self._enter(await self._peers.recorder.pending_moves(self.name))

    async def _begin_as_recorded(self, replay: Replay, number: int) -> None:
        closed = replay.closed(self.name)
        if closed is not None and number > max(closed[0], replay.begun(self.name)):
            await self._close(closed[1])
            return
        topology = self._island.topology
        settled = (*topology.moves, *topology.voided)
        moves = [
            m for m in replay.moves(self.name, number) if (self.name, number, m) not in settled
        ]
        await self._enter(moves)

    async def _enter(self, moves: Sequence[Move]) -> None:
        for move in moves:
            if isinstance(move, Graft):
                await self._learn(move.donor_candidate)
        await self._record(self._island.begin_round(moves))

    async def _learn(self, candidate: str) -> None:
        """Import a donor with its ancestors; in a replay, once its island has recorded them."""
        seq = -1
        while True:
            events = await self._peers.recorder.history([candidate])
            self._island.learn(events)
            lineage = self._island.lineage
            if candidate in lineage and lineage[candidate].verdict is not None:
                return
            records = await self._peers.recorder.watch(seq, POLL_S)
            seq = records[-1].seq if records else seq

    async def _consult(self, number: int) -> None:
        """Have the answer of the orchestrator on record, unless a recording was cut before it."""
        try:
            await self._peers.conductor.consult(self.name, number)
        except ReplayMiss:
            if not await self._close_as_recorded():
                raise
        else:
            await self._record(self._island.consulted())

    # --- the child ------------------------------------------------------------------------------

    async def make_child(self, need: NeedChild) -> None:
        """Have the mutator propose, unless search work is cut meanwhile, or was in a recording."""
        known = self._replay.proposals(need.candidate) if self._replay is not None else None
        if known is not None and need.tries >= known and await self._close_as_recorded():
            return
        make = self._propose(need) if self.nursery is None else self._adopt(self.nursery, need)
        await self._unless_stopped(make)

    async def _adopt(self, nursery: Nursery, need: NeedChild) -> None:
        """The child of this round, made ahead, enters the lineage in its turn."""
        await self._note("mutating", need.candidate)
        made = await nursery.child(self._island, need)
        child = made.proposal
        if made.harness is not None:
            await self._keep(child.candidate, made.harness, child.parents, made.message)
        await self._record(self._island.adopt(made.events))

    async def _propose(self, need: NeedChild) -> None:
        await self._note("mutating", need.candidate, " + ".join(need.parents))
        brief = await self._brief(need)
        spec = self._island.state.mutator
        scope = f"mutator/{need.candidate}/{need.tries}"
        bench = Bench(self._peers, self._parts.model_caller(spec), scope)
        check = partial(self._preflight, brief, bench)
        scales = Measuring(self._island, need, self._peers, self.affording, check)
        bench.measuring = partial(scales.measure, brief)
        try:
            mutator = self._mutator(spec)
            async with self.thinking:
                proposal = await bench.outage.outlast(lambda: proposed_by(mutator, brief, bench))
            proposal = replace(proposal, change=self._redactor.value(proposal.change))
            refusal = await self._preflight(brief, bench, proposal.tree)
        except NOT_THE_MUTATORS:
            raise
        except (BudgetSpent, SearchOver) as end:
            raise SearchStopped(f"{LIMIT} {end}") from None
        except MiloError as failure:
            said = self._redactor.text(str(failure))
            await self._record(self._island.sent_back(said, bench.usage))
            return
        finally:
            await bench.keep()
        usage = proposal.usage + bench.judging
        if refusal.reason:
            await self._record(self._island.sent_back(refusal.reason, usage, refusal.full))
            return
        await self._commit(need, brief, replace(proposal, usage=usage))

    def _mutator(self, spec: str) -> Mutator:
        """The mutator of the pool; one that holds something stays until `release`."""
        kept = self._engaged.get(spec) or self._parts.mutator(spec)
        if isinstance(kept, Engaged):
            self._engaged[spec] = kept
        return kept

    async def release(self) -> None:
        """Close the mutators that hold something."""
        while self._engaged:
            await self._engaged.popitem()[1].close()

    async def _preflight(self, brief: Brief, bench: Bench, tree: FileTree) -> Refusal:
        """What must hold before any attempt is paid, or why it doesn't."""
        parents = [parent.harness for parent in brief.parents]
        refusal = check_child(parents, tree, self._generality, brief.forbidden_digests)
        if refusal.reason:
            return refusal
        secret = ", ".join(self._redactor.finds_in(tree))
        if secret:
            return Refusal(reason=f"the child holds a secret of the run's owner: {secret}")
        child = Harness.from_tree(tree, "the child")
        patch = patch_between(parents[0].tree, child.tree)
        reason = await self._peers.dispatcher.smoke(child)
        return Refusal(reason=reason or await judged(self._parts, bench, patch))

    async def _commit(self, need: NeedChild, brief: Brief, proposal: Proposal) -> None:
        child = Harness.from_tree(proposal.tree, need.candidate)
        parents, parent = need.parents, brief.parents[0].harness
        own = [n.candidate for n in self._island.lineage if n.harness == proposal.made_from]
        if proposal.made_from and own:
            self._island.made_from(own[0])
            parents, parent = (own[0],), await self._peers.recorder.get_harness(own[0])
        lines = patch_between(parent.tree, child.tree).count("\n")
        change = replace(proposal.change, touched=touched_between(parent.tree, child.tree))
        message = f"{need.candidate}: {change.title}\n\n{change.diagnosis}\n\n{change.hypothesis}\n"
        await self._keep(need.candidate, child, parents, message)
        await self._record(self._island.proposed(child.digest, change, lines, proposal.usage))

    async def _brief(self, need: NeedChild) -> Brief:
        state = self._island.state
        views = [
            await self._peers.recorder.parent_view(
                parent, state.search, self._island.setup.k, EVIDENCE_LIMIT
            )
            for parent in await self._measured(need.parents)
        ]
        lineage = self._island.lineage.seen(partial(shown_to, Reader.MUTATOR))
        return Brief(
            island=self.name,
            round=need.round,
            parents=tuple(views),
            snapshot=build_snapshot(
                lineage,
                parent=need.parents[0],
                island=self.name,
                tasks=state.search,
                patches=await self._patches(need.parents[0]),
                memory=self._island.setup.strategy.memory,
            ),
            seed=need.seed,
            niche=state.niche,
            error=need.error,
            forbidden_digests=frozenset(n.harness for n in lineage if n.harness),
            signals=need.signals,
            library=tuple([await self._library_view(candidate) for candidate in need.library]),
        )

    async def _library_view(self, candidate: str) -> ParentView:
        """An earlier candidate to look into, with fewer attempts than a parent has."""
        state, k = self._island.state, self._island.setup.k
        return await self._peers.recorder.parent_view(candidate, state.search, k, LIBRARY_LIMIT)

    async def _measured(self, parents: Sequence[str]) -> Sequence[str]:
        """Parents, once a donor's attempts on this island's search set are on record too."""
        for donor in parents[1:]:
            await self._peers.dispatcher.evaluate(
                EvaluationRequest(
                    island=self.name,
                    candidate=donor,
                    harness=await self._peers.recorder.get_harness(donor),
                    split="search",
                    tasks=self._island.state.search,
                    k=self._island.setup.k,
                    reservation=promise_of(self._island),
                )
            )
        return parents

    async def _patches(self, parent: str) -> Mapping[str, str]:
        """Patches along the path from the seed to the parent, by child."""
        path = self._island.lineage.path_from_seed(parent)
        trees = [await self._peers.recorder.get_harness(candidate) for candidate in path]
        return {
            child: patch_between(before.tree, after.tree)
            for child, before, after in zip(path[1:], trees[:-1], trees[1:], strict=True)
        }
