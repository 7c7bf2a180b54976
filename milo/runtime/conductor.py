"""The conductor: the orchestrator behind its actor. It follows the bus and answers islands."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from milo.core.attempt import Usage
from milo.core.disclosure import Reader, shown_to
from milo.core.errors import ReplayMiss
from milo.core.events import Consulted
from milo.core.evidence import Exchange
from milo.core.moves import Consultation
from milo.core.population import Population
from milo.core.ports import Orchestrator, PopulationView
from milo.core.task import Suite
from milo.runtime.outage import Outage
from milo.runtime.parts import ModelCaller, Parts, RecorderPort
from milo.runtime.recorder import consultation_scope
from milo.runtime.wallclock import WallClock

SHARD = "orchestrator"


class Conductor:
    """Implements `ConductorPort`; one consultation at a time, each recorded once."""

    def __init__(self, parts: Parts, recorder: RecorderPort) -> None:
        self._parts = parts
        self._recorder = recorder
        self._suite: Suite = parts.suite()
        self._replay = parts.replay()
        outage = Outage(partial(recorder.trouble, SHARD))
        self._meter = Meter(parts.model_caller("orchestrator"), outage)
        self._orchestrator: Orchestrator = parts.orchestrator(self._meter)
        self._population = Population()
        self._clock = WallClock()
        self._seq = -1
        self._epoch = -1
        self._one = asyncio.Lock()

    async def consult(self, island: str, round_: int) -> Consultation:
        """The answer for a stalled island, recorded before it is given."""
        async with self._one:
            await self._catch_up()
            known = self._population.consultation(island, round_)
            if known is not None:
                return known
            answer = await self._answer(island, round_)
            usage, exchanges = self._meter.take()
            if exchanges:
                await self._recorder.put_session(consultation_scope(island, round_), exchanges)
            if self._epoch < 0:
                self._epoch = await self._recorder.claim(SHARD)
            event = Consulted(consultation=answer, usage=usage)
            await self._recorder.append(SHARD, self._epoch, [event])
            return answer

    async def _catch_up(self) -> None:
        for record in await self._recorder.watch(self._seq, 0.0):
            self._population.apply(record.event)
            self._clock.apply(record)
            self._seq = record.seq

    async def _answer(self, island: str, round_: int) -> Consultation:
        if self._replay is not None:
            recorded = self._replay.consultation(island, round_)
            if recorded is None:
                raise ReplayMiss(f"replay miss: no consultation of {island} in round {round_}")
            return recorded
        self._meter.scope = consultation_scope(island, round_)
        return await self._orchestrator.consult(await self._view(), island)

    async def _view(self) -> PopulationView:
        plan = self._parts.plan
        left = await self._recorder.remaining()
        attempts = left["attempts"]
        return PopulationView(
            topology=self._population.topology,
            lineage=self._population.lineage.seen(partial(shown_to, Reader.ORCHESTRATOR)),
            pool=plan.agents.mutators,
            search_split=self._suite.splits.search,
            attempts_left=None if attempts is None else int(attempts),
            k=self._suite.k,
            patience=plan.strategy.patience,
            past=tuple(c.consultation for c in self._population.consultations),
            left={
                "tokens": left["tokens"],
                "dollars": left["dollars"],
                "hours": self._hours_left(),
                "rounds": plan.budget.rounds,
            },
        )

    def _hours_left(self) -> float | None:
        """Of the run's time; None where that is not limited."""
        hours, zero = self._parts.plan.budget.hours, self._clock.zero
        used = 0.0 if zero is None else (self._parts.now() - zero) / 3600
        return None if hours is None else max(0.0, hours - used)


class Meter:
    """A model caller that keeps the usage and exchanges of one consultation; an `outage` of the
    model's provider is waited out."""

    def __init__(self, caller: ModelCaller, outage: Outage) -> None:
        self._caller = caller
        self._outage = outage
        self._usage = Usage()
        self._exchanges: list[Exchange] = []
        self.scope = SHARD

    async def __call__(
        self,
        scope: str,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]] = (),
    ) -> tuple[str, Usage, tuple[Exchange, ...]]:
        """Call, and count."""
        text, usage, exchanges = await self._outage.outlast(
            lambda: self._caller(self.scope or scope, messages, tools)
        )
        self._usage = self._usage + usage
        self._exchanges.extend(exchanges)
        return text, usage, exchanges

    def take(self) -> tuple[Usage, tuple[Exchange, ...]]:
        """What was counted since the last take."""
        usage, exchanges = self._usage, tuple(self._exchanges)
        self._usage, self._exchanges = Usage(), []
        return usage, exchanges
