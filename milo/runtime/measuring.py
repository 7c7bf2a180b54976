"""Measurements on demand: what a peer asks of trees on its way to a candidate.

They take the path of every other candidate: the same checks before anything is paid, the island's
own promise, the shared slots, the records. So a tree that becomes a candidate later is not run
again on what was measured of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from milo.core.evidence import Brief
from milo.core.harness import Harness
from milo.core.peering import Measured
from milo.core.tree import FileTree
from milo.runtime.affording import Affording, promise_of
from milo.runtime.parts import LIMIT, EvaluationRequest, Peers, SearchStopped
from milo.search.island import Island, NeedChild
from milo.search.preflight import Refusal

EVIDENCE_LIMIT = 96
Check = Callable[[FileTree], Awaitable[Refusal]]


class Measuring:
    """Measures for one round of an island; `check` is what must hold of a tree before that."""

    def __init__(
        self, island: Island, need: NeedChild, peers: Peers, affording: Affording, check: Check
    ) -> None:
        self._island = island
        self._need = need
        self._peers = peers
        self._affording = affording
        self._check = check

    async def measure(self, brief: Brief, tree: FileTree, tasks: Sequence[str]) -> Measured:
        """As `MeasuringWorkshop` says; raises `SearchStopped` where the next child can't be paid
        any more."""
        island = self._island
        beside = sorted(set(tasks) - set(island.state.search))
        if beside:
            return Measured(refusal=f"{beside[0]} is no task of the search set")
        if tree.digest not in brief.forbidden_digests:
            refusal = await self._check(tree)
            if refusal.reason:
                return Measured(refusal=refusal.reason)
            short = await self._affording.reserve_again()
            if short:
                raise SearchStopped(f"{LIMIT} {short}")
        return await self._run(Harness.from_tree(tree, "the child"), tuple(tasks))

    async def _run(self, harness: Harness, tasks: tuple[str, ...]) -> Measured:
        k = self._island.setup.k
        result = await self._peers.dispatcher.evaluate(
            EvaluationRequest(
                island=self._island.setup.island,
                candidate=self._need.candidate,
                harness=harness,
                split="search",
                tasks=tasks,
                k=k,
                reservation=promise_of(self._island),
            )
        )
        evidence = await self._peers.recorder.evidence(harness.digest, tasks, k, EVIDENCE_LIMIT)
        return Measured(scores=result.scores, evidence=evidence)
