"""The dispatcher: one pool of slots over all container hosts, shared by all islands.

An evaluation becomes attempts; attempts on record are reused, attempts in flight for somebody
else are waited for, the rest queue for a slot. Outcomes are recorded (in groups, as they come)
before anybody is told of them, so whatever an island knows survives the night.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from milo.core.attempt import AttemptKey, Outcome, Status
from milo.core.calls import SPENT
from milo.core.errors import ReplayMiss, SandboxLost
from milo.core.evidence import Trace
from milo.core.fitness import evaluate, missing_tasks
from milo.core.harness import Harness
from milo.core.ports import AttemptResult, Exit
from milo.core.task import Suite
from milo.core.tree import FileTree
from milo.runtime.parts import (
    LIMIT,
    Doing,
    EvaluationRequest,
    EvaluationResult,
    HostPort,
    Load,
    PeerLost,
    RecorderPort,
    SearchStopped,
)
from milo.runtime.recorder import attempt_key
from milo.runtime.schedule import Durations, SlotQueue, Work, need_of
from milo.runtime.seats import Seat, Seats

BACK_OFF_S = 1.0
MODEL_FAULT = "model: "
REPLAY_MISS = "replay miss:"
Waiting = asyncio.Future[Outcome]
T = TypeVar("T")


@dataclass(kw_only=True, slots=True)
class _Evaluation:
    """One request under way."""

    request: EvaluationRequest
    done: int
    wanted: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Flight:
    """An attempt that waits or runs, and who is told of it."""

    future: Waiting
    request: EvaluationRequest


class Dispatcher:
    """Implements `DispatcherPort` on one event loop."""

    def __init__(self, suite: Suite, recorder: RecorderPort, model: str, *, retries: int) -> None:
        self._suite = suite
        self._recorder = recorder
        self._model = model
        self._retries = retries
        self._seats = Seats()
        self._queue = SlotQueue()
        self._durations = Durations()
        self._evaluations: dict[int, _Evaluation] = {}
        self._flying: dict[AttemptKey, _Flight] = {}
        self._tasks: dict[asyncio.Task[None], AttemptKey] = {}
        self._finished: list[tuple[AttemptResult, _Flight]] = []
        self._flushing = asyncio.Lock()
        self._doing: dict[str, Doing] = {}
        self._numbers = 0
        self._stopped = ""
        self._stopping = asyncio.Event()
        self._attempts = 0
        self._tokens = 0
        self._deadline: float | None = None

    async def add_host(self, host: HostPort, slots: int, gpus: int = 0, gpu_type: str = "") -> None:
        """A host joins; its slots are used at once. What is on record tells durations."""
        if not self._durations.count:
            for task, (n, seconds) in (await self._recorder.durations()).items():
                self._durations.add(task, seconds, n)
        self._seats.add(
            Seat(
                host=host,
                free=slots,
                slots=slots,
                gpus=gpus,
                gpu_type=gpu_type,
                total_gpus=gpus,
            )
        )
        self._pump()

    async def hosts(self) -> tuple[str, ...]:
        """Names of the hosts that are thought alive."""
        return self._seats.names

    async def evaluate(self, request: EvaluationRequest) -> EvaluationResult:
        """Score a candidate; waits until each of its attempts is recorded or given up.

        Raises `SearchStopped` when search work is cut, and `ReplayMiss` where a replayed run asked
        for what was never recorded.
        """
        if self._stopped and not self._outlives_stop(request):
            raise SearchStopped(self._stopped)
        keys = [
            attempt_key(
                request.harness.digest, self._suite, task, self._model, index, request.replicate
            )
            for task in request.tasks
            for index in range(request.k)
        ]
        self._numbers += 1
        number = self._numbers
        entry = _Evaluation(request=request, done=0, wanted=len(keys))
        self._evaluations[number] = entry
        try:
            waiting = await self._claim(keys, number, request)
            for future in waiting:
                future.add_done_callback(lambda _, e=entry: _count(e))  # type: ignore[misc]
            self._pump()
            results = await asyncio.gather(*waiting, return_exceptions=True)
        finally:
            del self._evaluations[number]
        return _result(request, _raised(results))

    async def _claim(
        self, keys: Sequence[AttemptKey], number: int, request: EvaluationRequest
    ) -> list[Waiting]:
        """Each attempt's future: in flight for somebody, on record, or queued now.

        What nobody has in flight is claimed before the records are asked: whoever wants the same
        attempt meanwhile waits for this answer instead of starting it a second time.
        """
        mine = [key for key in keys if key not in self._flying]
        for key in mine:
            future: Waiting = asyncio.get_running_loop().create_future()
            self._flying[key] = _Flight(future=future, request=request)
        waiting = [self._flying[key].future for key in keys]
        try:
            known = await self._recorder.known(mine)
        except BaseException as error:  # the boundary: whoever waits is told
            for key in mine:
                self._fail(key, error)
            raise
        for key in mine:
            flight = self._flying.get(key)  # none where a stop has cut it meanwhile
            if key in known and flight is not None:
                del self._flying[key]
                flight.future.set_result(known[key])
            elif flight is not None and self._stopped and not self._outlives_stop(request):
                self._cut(key)
            elif flight is not None:
                self._enqueue(key, number, request)
        return waiting

    def _enqueue(self, key: AttemptKey, number: int, request: EvaluationRequest) -> None:
        self._queue.push(
            Work(
                key=key,
                evaluation=number,
                expected_s=self._durations.expected(key.task, request.island),
                since=asyncio.get_running_loop().time(),
                island=request.island,
                need=need_of(request.harness, self._suite.tasks[key.task]),
            )
        )

    def _pump(self) -> None:
        """Give every free slot its next attempt."""
        while (given := self._seats.take(self._queue)) is not None:
            work, seat = given
            task = asyncio.create_task(self._run(work, seat))
            self._tasks[task] = work.key
            task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def _leave(self, work: Work, seat: Seat) -> None:
        self._seats.leave(work, seat)
        self._pump()

    async def _run(self, work: Work, seat: Seat) -> None:
        """One attempt on one slot; the slot is free again however it ends."""
        flight = self._flying.get(work.key)
        if flight is None:
            self._leave(work, seat)
            return
        waited_s = asyncio.get_running_loop().time() - work.since
        try:
            task = self._suite.tasks[work.key.task]
            result = await seat.host.run(work.key, flight.request.harness, task)
        except PeerLost as lost:
            self._seats.lose(seat.host)
            await self._recorder.forsake(str(work.key))
            result = AttemptResult(outcome=_lost(work.key, str(lost)), trace=Trace())
        except BaseException as error:  # the boundary: whoever waits is told
            self._fail(work.key, error)
            if isinstance(error, asyncio.CancelledError):
                raise
            return
        finally:
            self._leave(work, seat)
        await self._settle(work, _after_waiting(result, waited_s), flight)

    def _fail(self, key: AttemptKey, error: BaseException) -> None:
        flight = self._flying.pop(key, None)
        if flight is not None and not flight.future.done():
            flight.future.set_exception(error)
            flight.future.exception()

    async def _settle(self, work: Work, result: AttemptResult, flight: _Flight) -> None:
        """Record an outcome; a fault of ours is tried again first, with back-off."""
        outcome = result.outcome
        fault = outcome.detail.removeprefix(MODEL_FAULT)
        if fault.startswith(REPLAY_MISS):
            self._fail(work.key, ReplayMiss(fault))
            return
        spent = fault.startswith(SPENT)
        retried = outcome.status.is_infrastructure and work.tries <= self._retries
        searching = flight.request.split != "test"
        if outcome.usage.calls and (retried or (spent and searching)):
            await self._recorder.record([result], [flight.request.reservation])
        if spent and searching:
            reason = f"{LIMIT} {fault.removeprefix(SPENT)}"
            self._fail(work.key, SearchStopped(reason))
            return
        if retried and not spent:
            await asyncio.sleep(BACK_OFF_S * 2 ** (work.tries - 1))
            since = asyncio.get_running_loop().time()
            self._queue.push(replace(work, tries=work.tries + 1, since=since))
            self._pump()
            return
        result = replace(result, outcome=replace(outcome, tries=work.tries))
        self._durations.add(work.key.task, outcome.timings.slot_s, island=work.island)
        self._attempts += 1
        self._tokens += outcome.usage.tokens
        self._finished.append((result, flight))
        await self._flush()

    async def _flush(self) -> None:
        """Record whatever has finished as one group; it forms while the last is written."""
        async with self._flushing:
            group, self._finished = self._finished, []
            if not group:
                return
            try:
                await self._recorder.record(
                    [result for result, _ in group],
                    [flight.request.reservation for _, flight in group],
                )
            except BaseException as error:  # the boundary: whoever waits is told
                for result, _ in group:
                    self._fail(result.outcome.key, error)
                raise
            for result, flight in group:
                self._flying.pop(result.outcome.key, None)
                if not flight.future.done():
                    flight.future.set_result(result.outcome)

    async def smoke(self, harness: Harness) -> str:
        """A smoke test on some host.

        A harness that asks for more GPUs than any host has would wait for ever: it fails.
        """
        gpus = harness.manifest.gpus
        most = self._seats.most_gpus
        if most is not None and gpus > most:
            return f"the manifest asks for {gpus} GPUs; no host has more than {most}"
        return await self._beside_slots(lambda host: host.smoke(harness))

    async def shell(self, tree: FileTree, command: str, timeout_s: float) -> tuple[Exit, FileTree]:
        """A command in a copy of a tree, on some host."""
        return await self._beside_slots(lambda host: host.shell(tree, command, timeout_s))

    async def _beside_slots(self, work: Callable[[HostPort], Awaitable[T]]) -> T:
        """Work that takes no slot, on the idlest host; done again elsewhere if that host dies.

        Waits while there is no host at all, until one joins; and gives a sandbox that is away as
        many tries as an attempt has. Raises `SandboxLost` where it stays away.
        """
        tries = 0
        while True:
            host = await self._seats.idlest()
            try:
                return await work(host)
            except PeerLost:
                self._seats.lose(host)
            except SandboxLost:
                tries += 1
                if tries > self._retries:
                    raise
                await asyncio.sleep(BACK_OFF_S * 2 ** (tries - 1))

    async def note(self, doing: Doing) -> None:
        """What an island is at."""
        self._doing[doing.island] = doing

    async def load(self) -> Load:
        """The present load, with each island's progress through its evaluation."""
        doing = dict(self._doing)
        for entry in self._evaluations.values():
            was = doing.get(entry.request.island)
            if was is not None and was.candidate == entry.request.candidate:
                doing[was.island] = replace(was, done=entry.done, wanted=entry.wanted)
        return Load(
            busy=self._seats.busy,
            slots=self._seats.slots,
            queued=len(self._queue),
            doing=tuple(doing[island] for island in sorted(doing)),
            mean_attempt_s=self._durations.mean_s,
            tokens=self._tokens,
            attempts=self._attempts,
            deadline=self._deadline,
        )

    async def set_deadline(self, deadline: float | None) -> None:
        """When search work will end."""
        self._deadline = deadline

    async def stop(self, reason: str, *, drain: bool = False) -> None:
        """Cut search work: what waits is dropped, what runs is cancelled or (`drain`) awaited.

        A spent limit (a reason that begins with ``limit:``) spares the validation of a child that
        was already admitted: it was reserved with the child, and without it the child is lost.
        """
        self._stopped = reason
        self._stopping.set()
        for work in self._queue.clear():
            flight = self._flying.get(work.key)
            if flight is not None and self._outlives_stop(flight.request):
                self._queue.push(work)
            else:
                self._cut(work.key)
        if drain:
            if self._tasks:
                await asyncio.wait(set(self._tasks))
            return
        for key, flight in list(self._flying.items()):
            if not self._outlives_stop(flight.request):
                self._cut(key)
        for task, key in list(self._tasks.items()):
            if key not in self._flying:
                task.cancel()

    def _outlives_stop(self, request: EvaluationRequest) -> bool:
        limited = self._stopped.startswith(LIMIT)
        return request.split == "test" or (limited and request.split == "validation")

    async def stopped(self) -> str:
        """Waits until search work is cut; why. For whoever works without slots."""
        await self._stopping.wait()
        return self._stopped

    def _cut(self, key: AttemptKey) -> None:
        self._fail(key, SearchStopped(self._stopped))


def _count(entry: _Evaluation) -> None:
    entry.done += 1


def _raised(results: Sequence[Outcome | BaseException]) -> list[Outcome]:
    """The outcomes; the first failure is raised."""
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if isinstance(result, Outcome)]


def _after_waiting(result: AttemptResult, waited_s: float) -> AttemptResult:
    timings = replace(result.outcome.timings, queued_s=waited_s)
    return replace(result, outcome=replace(result.outcome, timings=timings))


def _lost(key: AttemptKey, why: str) -> Outcome:
    return Outcome(
        key=key, status=Status.ENVIRONMENT_ERROR, reward=None, detail=f"host lost: {why}"
    )


def _result(request: EvaluationRequest, outcomes: Sequence[Outcome]) -> EvaluationResult:
    """Scores of the tasks of which enough is known: at most a third of the attempts is missing.

    Else a harness whose provider calls fail when it is unsure would be scored on its sure ones.
    """
    least = -(-2 * request.k // 3)
    scores = {task: score for task, score in evaluate(outcomes).items() if score.n >= least}
    return EvaluationResult(scores=scores, missing=missing_tasks(scores, request.tasks))
