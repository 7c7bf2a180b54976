"""The recorder: the one owner of the run directory, the ledger and the event bus.

Everything that must survive goes through it, without secrets; the bus is the tail of the journal,
so whoever follows it sees exactly what a later resume will see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from milo.core.attempt import AttemptKey, Outcome, Usage
from milo.core.budget import Spend
from milo.core.disclosure import Reader, shown_to
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Consulted,
    Event,
    IslandFounded,
    MoveApplied,
    ProposalSentBack,
    Record,
)
from milo.core.evidence import Evidence, Exchange, ParentView, Trace
from milo.core.harness import Harness
from milo.core.moves import Graft, Move
from milo.core.population import Population
from milo.core.ports import AttemptResult
from milo.core.rates import Rates
from milo.core.redaction import redactor
from milo.core.task import Suite
from milo.runtime.parts import Parts, Records
from milo.runtime.room import Room
from milo.runtime.treasury import Treasury


class Recorder:
    """Implements `RecorderPort` on one event loop; concurrency is by interleaving only."""

    def __init__(self, parts: Parts, model: str = "") -> None:
        self._records: Records = parts.open_records()
        self._suite: Suite = parts.suite()
        self._model = model
        self._redactor = redactor(parts.secrets())
        self._journal: list[Record] = list(self._records.records())
        self._population = Population.of(self._journal)
        self._news = asyncio.Event()
        self._treasury = Treasury(
            parts.plan.budget,
            self._records,
            self._population,
            _rates(parts),
            hard=not parts.plan.replay,
        )
        self._ledger = self._treasury.ledger
        self._troubles: dict[str, str] = {}
        self._room = Room(self._records.shortage, partial(self._note, "the disk"))
        self._sent_back = _sent_back(self._journal)

    async def set_model(self, model: str) -> None:
        """The pinned model's name, as attempt keys carry it; known once a host is up."""
        self._model = model

    async def claim(self, shard: str) -> int:
        """A new epoch for a shard."""
        return await self._room.write(lambda: self._records.claim(shard))

    async def append(self, shard: str, epoch: int, events: Sequence[Event]) -> None:
        """Append to the journal, fold, and wake whoever watches."""
        if not events:
            return
        clean = self._redactor.value(tuple(events))
        for record in await self._room.write(lambda: self._records.append(shard, epoch, clean)):
            self._journal.append(record)
            self._population.apply(record.event)
            self._charge(record.event)
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _charge(self, event: Event) -> None:
        """Charge what of a piece's usage was seen in no call; a candidate's is the sum of all its
        proposals', of which those that were sent back were charged before."""
        if isinstance(event, ProposalSentBack | CandidateProposed):
            own = (f"mutator/{event.candidate}",)
            before = self._sent_back.pop(event.candidate, Spend())
            if isinstance(event, ProposalSentBack):
                self._treasury.absorb("mutator", own, Spend.of(event.usage))
                self._sent_back[event.candidate] = before + Spend.of(event.usage)
            else:
                self._treasury.absorb("mutator", own, Spend.of(event.usage) - before)
        elif isinstance(event, Consulted):
            told = event.consultation
            scope = consultation_scope(told.island, told.round)
            self._treasury.absorb("orchestrator", (scope,), Spend.of(event.usage))

    async def watch(self, after_seq: int, timeout_s: float) -> Sequence[Record]:
        """Records after a sequence number; unblocked by the next append or by the time-out."""
        fresh = self._after(after_seq)
        if not fresh and timeout_s > 0:
            try:
                await asyncio.wait_for(self._news.wait(), timeout_s)
            except TimeoutError:
                return ()
            fresh = self._after(after_seq)
        return fresh

    def _after(self, seq: int) -> Sequence[Record]:
        start = len(self._journal)
        while start and self._journal[start - 1].seq > seq:
            start -= 1
        return self._journal[start:]

    async def island_events(self, island: str) -> tuple[Sequence[Event], Sequence[Event]]:
        """Own events in order, and the history of foreign candidates that they refer to."""
        own = [r.event for r in self._journal if r.shard == island]
        wanted: set[str] = set()
        for event in own:
            if isinstance(event, CandidateProposed):
                wanted.update(event.parents)
            elif isinstance(event, IslandFounded):
                wanted.update((event.root, *event.members))
            elif isinstance(event, MoveApplied) and isinstance(event.move, Graft):
                wanted.add(event.move.donor_candidate)
        made = {e.candidate for e in own if isinstance(e, CandidateProposed)}
        foreign = await self.history(sorted(wanted - made))
        return own, [e for e in foreign if getattr(e, "island", "") != island]

    async def history(self, candidates: Sequence[str]) -> Sequence[Event]:
        """The events that made candidates and their ancestors, in journal order."""
        known = [c for c in candidates if c in self._population.lineage]
        wanted = set(self._population.history_of(known))
        kinds = (CandidateProposed, CandidateScored, CandidateJudged)
        return [
            r.event
            for r in self._journal
            if isinstance(r.event, kinds) and r.event.candidate in wanted
        ]

    async def pending_moves(self, island: str) -> tuple[Move, ...]:
        """Moves that wait for this island's next round."""
        return self._population.pending_moves(island)

    async def known(self, keys: Sequence[AttemptKey]) -> Mapping[AttemptKey, Outcome]:
        """Valid outcomes on record."""
        return self._records.lookup(keys)

    async def durations(self) -> Mapping[str, tuple[int, float]]:
        """By task: how many attempts the lineage holds, and their mean seconds."""
        sums: dict[str, tuple[int, float]] = {}
        for node in self._population.lineage:
            for evaluation in node.scores.values():
                for task, score in evaluation.items():
                    n, total = sums.get(task, (0, 0.0))
                    taken_s = score.slot_s or score.latency_s
                    sums[task] = (n + score.n, total + score.n * taken_s)
        return {task: (n, total / n) for task, (n, total) in sums.items() if n}

    async def record(self, results: Sequence[AttemptResult], reservations: Sequence[str]) -> None:
        """Traces first, then the outcomes that name them, then the ledger."""
        clean = self._redactor.value(tuple(results))
        outcomes = await self._room.write(lambda: stored(self._records, clean))
        for outcome, reservation in zip(outcomes, reservations, strict=True):
            self._ledger.settle("", "target", Spend(attempts=1))
            self._ledger.shrink(reservation, Spend.of(outcome.usage, attempts=1))
            self._treasury.absorb("target", (str(outcome.key),), Spend.of(outcome.usage))

    async def put_harness(
        self,
        shard: str,
        epoch: int,
        candidate: str,
        harness: Harness,
        parents: Sequence[str],
        message: str,
    ) -> None:
        """Commit a candidate; one that a killed writer left without a record is replaced."""
        said = self._redactor.text(message)

        def write() -> None:
            self._records.fence(shard, epoch)
            unrecorded = candidate not in self._population.lineage
            self._records.put_harness(candidate, harness, parents, said, replace=unrecorded)

        await self._room.write(write)

    async def get_harness(self, candidate: str) -> Harness:
        """A candidate's harness."""
        return self._records.get_harness(candidate)

    async def parent_view(
        self, candidate: str, tasks: Sequence[str], k: int, limit: int
    ) -> ParentView:
        """A parent with its evidence, failures first; search-split material only."""
        node = self._population.lineage[candidate]
        evaluation = node.evaluation("search")
        return ParentView(
            candidate=candidate,
            harness=self._records.get_harness(candidate),
            scores={task: evaluation[task] for task in tasks if task in evaluation},
            evidence=await self.evidence(node.harness, tasks, k, limit),
        )

    async def evidence(
        self, harness: str, tasks: Sequence[str], k: int, limit: int
    ) -> tuple[Evidence, ...]:
        """Attempts of a harness (content hash), failures first; search-split material only."""
        allowed = set(self._suite.splits.search)
        keys = [
            attempt_key(harness, self._suite, task, self._model, index)
            for task in tasks
            if task in allowed
            for index in range(k)
        ]
        found = self._records.lookup(keys)
        outcomes = sorted(
            (found[key] for key in keys if key in found),
            key=lambda o: (o.resolved, o.key.task, o.key.index),
        )
        return tuple(self._shown(outcome) for outcome in outcomes[:limit])

    def _shown(self, outcome: Outcome) -> Evidence:
        task = shown_to(Reader.MUTATOR, self._suite.tasks[outcome.key.task])
        trace = self._records.get_trace(outcome.trace) if outcome.trace else Trace()
        return Evidence(
            instruction=task.instruction,
            family=task.family,
            outcome=shown_to(Reader.MUTATOR, outcome),
            trace=shown_to(Reader.MUTATOR, trace),
            workspace_files=tuple(task.workspace),
        )

    async def put_session(self, scope: str, exchanges: Sequence[Exchange]) -> None:
        """Keep a session's model calls."""
        trace = Trace(exchanges=self._redactor.value(tuple(exchanges)))
        await self._room.write(lambda: self._records.put_session(scope, trace))

    async def reserve(self, name: str, amount: Spend) -> None:
        """Promise; raises `BudgetExceeded`."""
        self._ledger.reserve(name, amount)

    async def settle(self, name: str, role: str, usage: Usage) -> None:
        """Close a promise."""
        self._ledger.settle(name, role, Spend.of(usage))

    async def reserve_call(self, call: str, role: str, scope: str, amount: Spend) -> None:
        """Promise what a model call may cost, once there is money and a turn for it."""
        await self._treasury.reserve_call(call, role, scope, amount)

    async def settle_call(self, call: str, amount: Spend) -> None:
        """What a model call cost."""
        await self._treasury.settle_call(call, amount)

    async def forsake(self, scope: str) -> None:
        """Whoever made the calls of a scope is gone."""
        self._treasury.forsake(scope)

    async def refused(self) -> str:
        """The limit that refused a model call; "" where none did."""
        return self._treasury.refused

    async def trouble(self, who: str, words: str) -> None:
        """What somebody waits out; "" once that is over."""
        self._note(who, words)

    async def troubles(self) -> tuple[str, ...]:
        """Everything that is waited out now: who waits, and for what."""
        return tuple(f"{who}: {words}" for who, words in sorted(self._troubles.items()))

    def _note(self, who: str, words: str) -> None:
        if words:
            self._troubles[who] = self._redactor.text(words)
        else:
            self._troubles.pop(who, None)

    async def spend(self) -> Mapping[str, Spend]:
        """Spent so far, by role."""
        return dict(self._ledger.spent)

    async def remaining(self) -> Mapping[str, float | None]:
        """Neither spent nor promised, by limit."""
        return self._ledger.remaining()

    async def close(self) -> None:
        """Flush and release the run directory."""
        self._records.close()


def consultation_scope(island: str, round_: int) -> str:
    """Under which the orchestrator's calls of one consultation are recorded."""
    return f"orchestrator/{island}/{round_}"


def _sent_back(journal: Sequence[Record]) -> dict[str, Spend]:
    """What the refused proposals of unfinished candidates have cost, by candidate."""
    spent: dict[str, Spend] = {}
    for event in (record.event for record in journal):
        if isinstance(event, ProposalSentBack):
            before = spent.get(event.candidate, Spend())
            spent[event.candidate] = before + Spend.of(event.usage)
        elif isinstance(event, CandidateProposed):
            spent.pop(event.candidate, None)
    return spent


def _rates(parts: Parts) -> Rates:
    """The declared limits of the target's provider."""
    model = parts.plan.model
    return Rates(requests=model.requests_per_minute, tokens=model.tokens_per_minute)


def stored(records: Records, results: Sequence[AttemptResult]) -> list[Outcome]:
    """The outcomes, recorded, each with its trace stored before it and named."""
    outcomes = [replace(r.outcome, trace=records.put_trace(r.trace)) for r in results]
    records.append_attempts(outcomes)
    return outcomes


def attempt_key(
    harness: str, suite: Suite, task: str, model: str, index: int, replicate: int = 0
) -> AttemptKey:
    """The key of one attempt of a harness (content hash) on a task of the suite."""
    return AttemptKey(
        harness=harness,
        task=task,
        task_digest=suite.tasks[task].digest,
        model=model,
        index=index,
        replicate=replicate,
    )
