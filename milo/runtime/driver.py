"""The driver: founds islands, waits for them, freezes the winner, scores the test split once.

It decides nothing about the search and keeps nothing: everything it knows it reads from the bus.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from milo.core.attempt import Usage
from milo.core.budget import Spend
from milo.core.errors import BudgetExceeded
from milo.core.events import (
    Event,
    Record,
    RunEnded,
    RunResumed,
    RunStarted,
)
from milo.core.plan import RunPlan
from milo.core.population import Population
from milo.core.task import Suite
from milo.runtime.finale import (
    attempt_s,
    candidates_to_test,
    expected_test,
    freeze_winner,
    harnesses_tested,
    score_test,
    spent_limit,
)
from milo.runtime.founding import Ticket
from milo.runtime.island_shell import Pace
from milo.runtime.parts import LIMIT, Load, Parts, PeerLost, SearchStopped
from milo.runtime.remembered import Remembered
from milo.runtime.sameness import check_same, digests
from milo.runtime.seeding import (
    Seed,
    are_numbered,
    foreign_seeds,
    given_name,
    order_by_fitness,
    references,
    smoke_seeds,
    start_name,
)
from milo.runtime.stage import Stage
from milo.runtime.tickets import open_tickets
from milo.runtime.treasury import TEST_PROMISE
from milo.runtime.wallclock import WallClock
from milo.search.island import SeedRef
from milo.search.preserving import probe_attempts

RUN_SHARD = "run"
TICK_S = 0.5
TEST_MARGIN = 1.1
TEST_SHARE_UNKNOWN = 0.25
TEST_SHARE_MOST = 0.5
RESTARTS = 5
NO_HOST = "container hosts: none is left; attempts wait for a node that can have one"
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Watcher:
    """Who is told: new records, and about twice a second the load and the spending."""

    on_records: Callable[[Sequence[Record]], None]
    on_load: Callable[[Load, Mapping[str, Spend]], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a drive ended; `interrupted` runs can be resumed."""

    reason: str
    interrupted: bool
    searched: bool = False


class Driver:
    """Drives one run on a stage, from its start or from its records.

    `seeds` of a run that has started are those on record, as numbered there (or as given, until
    they are numbered); `overrides` are changes to its plan that hold from now on, for the record;
    `past` is what the caller has read of its records, which need not come over the bus then.
    """

    def __init__(
        self,
        parts: Parts,
        stage: Stage,
        seeds: Sequence[Seed],
        watcher: Watcher,
        overrides: Sequence[str] = (),
        past: Sequence[Record] = (),
    ) -> None:
        self._parts = parts
        self._plan: RunPlan = parts.plan
        self._suite: Suite = parts.suite()
        self._stage = stage
        self._seeds = tuple(seeds)
        self._watcher = watcher
        self._overrides = tuple(overrides)
        self._population = Population()
        self._seq = -1
        self._epoch = -1
        self._test_attempt_s = Remembered(self._mean_test_attempt_s)
        self._ordering: asyncio.Task[tuple[Seed, ...]] | None = None
        self._islands: dict[str, asyncio.Task[str]] = {}
        self._restarts: dict[str, int] = {}
        self._interrupted = asyncio.Event()
        self._clock = WallClock()
        self._past = tuple(past)

    # --- what a face may call ------------------------------------------------------------------

    async def run(self) -> Ending:
        """The whole run; raises `MiloError` where it can't be set up or a piece is lost."""
        try:
            await self._stage.open()
            await self._begin()
            ending = await self._search()
            if ending.interrupted:
                return ending
            return await self._finish(ending)
        finally:
            await self._stop_islands()
            await self._stage.close()

    def interrupt(self) -> None:
        """Stop cleanly: attempts that run may end, nothing new is started."""
        self._interrupted.set()

    # --- the start -------------------------------------------------------------------------------

    async def _begin(self) -> None:
        recorder = self._stage.peers.recorder
        self._take(self._past)
        await self._follow(0.0)
        started = self._population.started
        if started is None:
            await self._tended(smoke_seeds(self._stage.peers, self._seeds))
        else:
            check_same(started, self._suite, self._stage.hosts[0].model)
        self._epoch = await self._told(recorder.claim(RUN_SHARD))
        if started is None:
            await self._start()
        else:
            await self._append([RunResumed(overrides=self._overrides)])
        if self._population.winner is None:
            await recorder.reserve(TEST_PROMISE, Spend(attempts=self._test_attempts()))
        if not self._are_numbered():
            ordering = order_by_fitness(self._stage.peers, self._suite, self._seeds)
            self._ordering = asyncio.create_task(ordering)

    def _are_numbered(self) -> bool:
        return are_numbered(self._population.lineage, self._seed_islands(), len(self._seeds))

    async def _start(self) -> None:
        """Keep the seeds, then say that the run exists: nothing is paid for before that."""
        await self._keep_seeds(start_name if self._are_numbered() else given_name)
        splits = self._suite.splits
        started = RunStarted(
            name=self._plan.run,
            plan=asdict(self._plan),
            search=splits.search,
            validation=splits.validation,
            test=splits.test,
            model=self._stage.hosts[0].model,
            seeds=tuple(seed.name for seed in self._seeds),
            tasks=digests(self._suite),
        )
        await self._append([started])

    async def _keep_seeds(self, named: Callable[[int], str]) -> None:
        for number, seed in enumerate(self._seeds, start=1):
            name = named(number)
            keeping = self._stage.peers.recorder.put_harness(
                RUN_SHARD, self._epoch, name, seed.harness, (), f"{name}: seed {seed.name}\n"
            )
            await self._told(keeping)

    async def _number_seeds(self) -> bool:
        """Number the seeds once their order is known; whether they are numbered."""
        if self._ordering is not None:
            if not self._ordering.done():
                return False
            self._seeds, self._ordering = self._ordering.result(), None
            await self._keep_seeds(start_name)
            await self._append(foreign_seeds(self._seeds, self._plan.strategy.islands))
        return True

    def _references(self) -> tuple[SeedRef, ...]:
        return references(self._seeds)

    def _test_attempts(self) -> int:
        test = len(self._suite.splits.test)
        return test * self._suite.k * harnesses_tested(self._plan, len(self._seeds))

    # --- the search ------------------------------------------------------------------------------

    def _tickets(self) -> list[Ticket]:
        return open_tickets(self._plan, self._suite, self._references(), self._population.topology)

    def _seed_islands(self) -> int:
        return min(self._plan.strategy.islands, len(self._seeds))

    def _pace(self) -> Pace:
        splits, k = self._suite.splits, self._suite.k
        probe = probe_attempts(self._plan.strategy, len(splits.search), k)
        return Pace(attempts_per_child=(len(splits.search) + len(splits.validation)) * k + probe)

    async def _launch_missing(self) -> None:
        if not await self._number_seeds():
            return
        for ticket in self._tickets():
            name = ticket.setup.island
            if name not in self._islands:
                self._islands[name] = self._stage.start_island(ticket, self._pace())

    async def _search(self) -> Ending:
        """Until every island is closed; waits for records, ends of islands, and interrupts."""
        while True:
            await self._launch_missing()
            await self._stage.tend()
            await self._follow(TICK_S)
            await self._tell_load()
            if self._interrupted.is_set():
                await self._stage.peers.dispatcher.stop("interrupted", drain=True)
                return Ending(reason="interrupted", interrupted=True)
            await self._keep_limits()
            await self._reap_islands()
            everyone_ended = all(task.done() for task in self._islands.values())
            if everyone_ended and not self._tickets():
                return Ending(reason=self._why_ended(), interrupted=False)

    def _why_ended(self) -> str:
        reasons = [state.closed for state in self._population.topology.islands.values()]
        return "; ".join(dict.fromkeys(reason for reason in reasons if reason))

    async def _reap_islands(self) -> None:
        """Look at islands that ended: a lost actor is restarted, anything else is raised."""
        for name, task in list(self._islands.items()):
            if not task.done():
                continue
            error = task.exception()
            if error is None or isinstance(error, SearchStopped):
                continue
            if isinstance(error, PeerLost) and self._restarts.get(name, 0) < RESTARTS:
                self._restarts[name] = self._restarts.get(name, 0) + 1
                del self._islands[name]
                continue
            raise error

    async def _keep_limits(self) -> None:
        """Tell the dispatcher how long search work may go on, and stop it at a spent limit."""
        dispatcher = self._stage.peers.dispatcher
        load = await dispatcher.load()
        deadline = self._search_deadline(load)
        await dispatcher.set_deadline(deadline)
        if self._parts.replay() is not None:
            return
        if deadline is not None and self._parts.now() >= deadline:
            await dispatcher.stop(f"{LIMIT} the time for searching is spent")
        recorder = self._stage.peers.recorder
        spent = await recorder.spend()
        limit = spent_limit(self._plan.budget, spent, self._test_attempts())
        limit = limit or await recorder.refused()
        if limit:
            await dispatcher.stop(f"{LIMIT} {limit} are spent")
        else:
            await self._keep_for_the_test(expected_test(spent["target"], self._test_attempts()))

    async def _keep_for_the_test(self, amount: Spend) -> None:
        """Keep money from search work. What islands have promised may leave no room for more than
        was kept before; their children then go first, and leave it."""
        with contextlib.suppress(BudgetExceeded):
            await self._stage.peers.recorder.reserve(TEST_PROMISE, amount)

    def _search_deadline(self, load: Load) -> float | None:
        """The end of the hours, less what the final test is expected to take."""
        hours = self._plan.budget.hours
        if hours is None or self._clock.zero is None or self._parts.replay() is not None:
            return None
        whole_s = hours * 3600
        test_s = whole_s * TEST_SHARE_UNKNOWN
        if (each_s := self._test_attempt_s.at(self._seq)) is not None:
            expected_s = self._test_attempts() * each_s / max(1, load.slots)
            test_s = min(expected_s * TEST_MARGIN, whole_s * TEST_SHARE_MOST)
        return self._clock.zero + whole_s - test_s

    def _mean_test_attempt_s(self) -> float | None:
        """Seconds of an attempt of those that would be tested now; None where too few tell."""
        lineage = self._population.lineage
        seeds = [r.candidate for r in self._references() if r.candidate in lineage]
        if not seeds:
            return None
        tested = candidates_to_test(self._population, self._suite, self._plan, seeds)
        known = [attempt_s(self._population, candidate) for candidate in tested]
        seconds = [s for s in known if s is not None]
        return sum(seconds) / len(seconds) if len(seconds) == len(tested) else None

    # --- the end ---------------------------------------------------------------------------------

    async def _finish(self, ending: Ending) -> Ending:
        """Freeze the winner, score it and the seeds once on the test split, and say so."""
        if self._population.winner is None:
            winner = freeze_winner(self._population, self._suite, self._plan)
            await self._append([] if winner is None else [winner])
        await self._keep_for_the_test(Spend(attempts=self._test_attempts()))
        if not await self._test():
            return Ending(reason="interrupted", interrupted=True)
        await self._stage.peers.recorder.settle(TEST_PROMISE, "target", Usage())
        searched = any(n.parents and n.evaluation("search") for n in self._population.lineage)
        await self._append([RunEnded(reason=ending.reason, searched=searched)])
        return Ending(reason=ending.reason, interrupted=False, searched=searched)

    async def _test(self) -> bool:
        """Score winner and seeds on the test split; False where it was interrupted."""
        seeds = [reference.candidate for reference in self._references()]
        candidates = candidates_to_test(self._population, self._suite, self._plan, seeds)
        peers = self._stage.peers
        testing = asyncio.ensure_future(
            self._tended(score_test(self._population, self._suite, peers, candidates))
        )
        while not testing.done():
            await asyncio.wait([testing], timeout=TICK_S)
            await self._tell_load()
            if self._interrupted.is_set():
                await peers.dispatcher.stop("interrupted", drain=True)
                testing.cancel()
                return False
        await self._append(list(testing.result()))
        return True

    async def _tended(self, work: Coroutine[Any, Any, T]) -> T:
        """Have hosts do something; those that die meanwhile are replaced, as in the search."""
        working = asyncio.create_task(work)
        try:
            while not (await asyncio.wait([working], timeout=TICK_S))[0]:
                await self._stage.tend()
            return working.result()
        finally:
            working.cancel()

    # --- the bus ---------------------------------------------------------------------------------

    async def _append(self, events: Sequence[Event]) -> None:
        await self._told(self._stage.peers.recorder.append(RUN_SHARD, self._epoch, events))
        await self._follow(0.0)

    async def _told(self, recording: Awaitable[T]) -> T:
        """Have something recorded; what that may have to wait for is told meanwhile."""
        waiting = asyncio.ensure_future(recording)
        try:
            while not (await asyncio.wait([waiting], timeout=TICK_S))[0]:
                await self._tell_load()
            return waiting.result()
        finally:
            waiting.cancel()

    async def _follow(self, timeout_s: float) -> None:
        """Fold and show what is new; waits for the first record up to the time-out."""
        self._take(await self._stage.peers.recorder.watch(self._seq, timeout_s))

    def _take(self, records: Sequence[Record]) -> None:
        for record in records:
            if record.seq <= self._seq:
                continue
            self._population.apply(record.event)
            self._seq = record.seq
            self._clock.apply(record)
        if records:
            self._watcher.on_records(records)

    async def _tell_load(self) -> None:
        peers = self._stage.peers
        load = await peers.dispatcher.load()
        load = replace(load, troubles=troubles_of(load, await peers.recorder.troubles()))
        self._watcher.on_load(load, await peers.recorder.spend())

    async def _stop_islands(self) -> None:
        working: list[asyncio.Task[Any]] = [*self._islands.values()]
        working += [self._ordering] if self._ordering is not None else []
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)


def troubles_of(load: Load, told: Sequence[str]) -> tuple[str, ...]:
    """What the run waits out: what its records tell, and a cluster that has lost all hosts."""
    return tuple(told) if load.slots else (*told, NO_HOST)
