"""One pool of slots: what is reused, shared, retried, moved to another host, or cut."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from dispatch_scene import SUITE, ScriptedHost, recorder_of, request

from milo.core.attempt import AttemptKey, Outcome, Status
from milo.core.errors import ReplayMiss, SandboxLost
from milo.core.events import CandidateProposed, CandidateScored, Change
from milo.core.evidence import Trace
from milo.core.fitness import TaskScore
from milo.core.harness import Harness
from milo.core.ports import AttemptResult
from milo.runtime.dispatch import Dispatcher
from milo.runtime.parts import PeerLost, SearchStopped
from milo.testing.landscape import landscape_harness
from milo.testing.memory_records import MemoryRecords


def wanting_gpus(gpus: int) -> Harness:
    plain = landscape_harness({"a": 1})
    text = plain.tree.text("harness.toml") + f"gpus = {gpus}\n"
    return Harness.from_tree(plain.tree.with_texts({"harness.toml": text}))


@pytest.fixture
def records() -> MemoryRecords:
    return MemoryRecords()


@pytest.fixture
def dispatcher(records: MemoryRecords, monkeypatch: pytest.MonkeyPatch) -> Dispatcher:
    monkeypatch.setattr("milo.runtime.dispatch.BACK_OFF_S", 0.0)
    return Dispatcher(SUITE, recorder_of(records), "m", retries=2)


async def test_known_attempts_are_reused(dispatcher: Dispatcher) -> None:
    host = ScriptedHost("one")
    await dispatcher.add_host(host, 4)
    first = await dispatcher.evaluate(request())
    again = await dispatcher.evaluate(request())
    assert first == again
    assert len(host.runner.ran) == 16


async def test_two_islands_that_want_the_same_attempts_pay_once(dispatcher: Dispatcher) -> None:
    host = ScriptedHost("one")
    await dispatcher.add_host(host, 4)
    one, two = await asyncio.gather(dispatcher.evaluate(request()), dispatcher.evaluate(request()))
    assert one == two
    assert len(host.runner.ran) == 16


async def test_no_more_attempts_run_at_once_than_there_are_slots(dispatcher: Dispatcher) -> None:
    async def breathe(key: AttemptKey) -> None:
        await asyncio.sleep(0)

    host = ScriptedHost("one", breathe)
    await dispatcher.add_host(host, 3)
    await dispatcher.evaluate(request())
    assert host.most == 3


async def test_an_attempt_tells_how_long_it_waited_for_a_slot(
    dispatcher: Dispatcher, records: MemoryRecords
) -> None:
    async def breathe(key: AttemptKey) -> None:
        await asyncio.sleep(0.001)

    await dispatcher.add_host(ScriptedHost("one", breathe), 1)
    await dispatcher.evaluate(request(k=1))
    waited = sorted(outcome.timings.queued_s for outcome in records.outcomes.values())
    assert 0 <= waited[0] < 0.001 * (len(waited) - 1) <= waited[-1]


async def test_attempts_of_a_dead_host_run_elsewhere(dispatcher: Dispatcher) -> None:
    async def die(key: AttemptKey) -> None:
        raise PeerLost("gone")

    healthy = ScriptedHost("healthy")
    await dispatcher.add_host(ScriptedHost("dying", die), 8)
    waiting = asyncio.create_task(dispatcher.evaluate(request()))
    await asyncio.sleep(0.01)
    await dispatcher.add_host(healthy, 2)
    result = await waiting
    assert not result.missing
    assert len(healthy.runner.ran) == 16
    assert await dispatcher.hosts() == ("healthy",)
    assert await dispatcher.smoke(landscape_harness({})) == "smoked on healthy"


async def test_a_mutators_command_on_a_host_that_dies_is_run_elsewhere(
    dispatcher: Dispatcher,
) -> None:
    """What breaks without it: its island is taken for dead, and started anew."""

    async def die(key: AttemptKey) -> None:
        raise PeerLost("gone")

    await dispatcher.add_host(ScriptedHost("dying", die), 8)
    await dispatcher.add_host(ScriptedHost("healthy"), 2)
    ended, _ = await dispatcher.shell(landscape_harness({}).tree, "true", 1.0)
    assert ended.stdout == "true"
    assert await dispatcher.hosts() == ("healthy",)


async def test_a_smoke_test_without_a_sandbox_is_tried_again_and_blames_no_child(
    dispatcher: Dispatcher,
) -> None:
    """What breaks without it: a child is invalid because the engine was dead."""
    tries = 0

    async def be_away(key: AttemptKey) -> None:
        nonlocal tries
        tries += 1
        if tries != 3:
            raise SandboxLost("no engine")

    await dispatcher.add_host(ScriptedHost("one", be_away), 8)
    assert await dispatcher.smoke(landscape_harness({})) == "smoked on one"
    with pytest.raises(SandboxLost, match="no engine"):
        await dispatcher.smoke(landscape_harness({}))
    assert tries == 6, "it is given up after as many tries as an attempt has"


async def test_the_longest_expected_attempts_go_first_by_what_earlier_sessions_recorded(
    records: MemoryRecords,
) -> None:
    seconds = {task: float(nth) for nth, task in enumerate(SUITE.splits.search)}
    scores = {
        task: TaskScore(n=2, reward=0.0, resolved=0, tokens=1.0, latency_s=s)
        for task, s in seconds.items()
    }
    seed = CandidateProposed(
        island="i1",
        candidate="i1.0",
        round=0,
        parents=(),
        harness="h",
        mutator="",
        change=Change(title="seed"),
    )
    scored = CandidateScored(island="i1", candidate="i1.0", split="search", scores=scores)
    recorder = recorder_of(records)
    await recorder.append("i1", await recorder.claim("i1"), [seed, scored])
    resumed = Dispatcher(SUITE, recorder_of(records), "m", retries=0)
    host = ScriptedHost("one")
    await resumed.add_host(host, 1)
    await resumed.evaluate(request(k=1))
    ran = [name.split("/")[1].partition("@")[0] for name in host.runner.ran]
    assert ran == sorted(seconds, key=lambda task: -seconds[task])


async def test_attempts_that_want_gpus_run_where_they_are_and_no_more_at_once(
    dispatcher: Dispatcher,
) -> None:
    async def breathe(key: AttemptKey) -> None:
        await asyncio.sleep(0)

    plain, rich = ScriptedHost("plain", breathe), ScriptedHost("rich", breathe)
    await dispatcher.add_host(plain, 4)
    await dispatcher.add_host(rich, 4, 2, "T4")
    greedy = wanting_gpus(1)
    await dispatcher.evaluate(replace(request(), harness=greedy))
    assert (len(plain.runner.ran), len(rich.runner.ran), rich.most) == (0, 16, 2)
    assert (await dispatcher.smoke(greedy)).startswith("smoked")
    assert "no host has more than 2" in await dispatcher.smoke(wanting_gpus(3))


async def test_a_host_with_gpus_is_left_to_those_who_want_one_while_others_are_free(
    dispatcher: Dispatcher,
) -> None:
    async def breathe(key: AttemptKey) -> None:
        await asyncio.sleep(0)

    plain, rich = ScriptedHost("plain", breathe), ScriptedHost("rich", breathe)
    await dispatcher.add_host(rich, 4, 2, "T4")
    await dispatcher.add_host(plain, 16)
    await dispatcher.evaluate(request())
    assert len(rich.runner.ran) == 0


async def test_a_fault_that_stays_is_missing_and_not_zero(
    dispatcher: Dispatcher, records: MemoryRecords
) -> None:
    broken = SUITE.splits.search[0]

    async def fail(key: AttemptKey) -> AttemptResult | None:
        if key.task != broken:
            return None
        outcome = Outcome(key=key, status=Status.MODEL_ERROR, reward=None, detail="down")
        return AttemptResult(outcome=outcome, trace=Trace())

    await dispatcher.add_host(ScriptedHost("one", fail), 4)
    result = await dispatcher.evaluate(request(k=1))
    assert result.missing == (broken,)
    assert broken not in result.scores
    (lost,) = [o for o in records.outcomes.values() if not o.is_valid]
    assert lost.tries == 3


@pytest.mark.parametrize(("k", "lost", "scored"), [(2, 1, False), (3, 1, True), (3, 2, False)])
async def test_a_task_is_scored_only_where_at_most_a_third_of_its_attempts_is_missing(
    dispatcher: Dispatcher, k: int, lost: int, scored: bool
) -> None:
    task = SUITE.splits.search[0]

    async def fail(key: AttemptKey) -> AttemptResult | None:
        if (key.task, key.index < lost) != (task, True):
            return None
        outcome = Outcome(key=key, status=Status.MODEL_ERROR, reward=None, detail="down")
        return AttemptResult(outcome=outcome, trace=Trace())

    await dispatcher.add_host(ScriptedHost("one", fail), 4)
    result = await dispatcher.evaluate(request(k=k))
    assert (task in result.scores) is scored
    assert result.missing == (() if scored else (task,))


async def test_a_replay_miss_ends_the_evaluation_loudly(dispatcher: Dispatcher) -> None:
    async def miss(key: AttemptKey) -> AttemptResult:
        outcome = Outcome(
            key=key, status=Status.MODEL_ERROR, reward=None, detail="replay miss: call 0"
        )
        return AttemptResult(outcome=outcome, trace=Trace())

    await dispatcher.add_host(ScriptedHost("one", miss), 4)
    with pytest.raises(ReplayMiss, match="call 0"):
        await dispatcher.evaluate(request())


async def test_a_spent_limit_cuts_search_work_and_leaves_the_test(dispatcher: Dispatcher) -> None:
    held = asyncio.Event()

    async def hold(key: AttemptKey) -> None:
        if key.index < 2:
            await held.wait()

    await dispatcher.add_host(ScriptedHost("one", hold), 2)
    waiting = asyncio.create_task(dispatcher.evaluate(request()))
    await asyncio.sleep(0.01)
    await dispatcher.stop("limit: hours are spent")
    with pytest.raises(SearchStopped, match="hours are spent"):
        await waiting
    held.set()
    with pytest.raises(SearchStopped):
        await dispatcher.evaluate(request())
    assert not (await dispatcher.evaluate(request("test"))).missing


async def test_a_spent_limit_spares_the_validation_of_an_admitted_child(
    dispatcher: Dispatcher,
) -> None:
    """Cut there, the best child of a short run would be lost after it was paid for."""
    go = asyncio.Event()

    async def hold(key: AttemptKey) -> None:
        await go.wait()

    await dispatcher.add_host(ScriptedHost("one", hold), 2)
    validating = asyncio.create_task(dispatcher.evaluate(request("validation")))
    searching = asyncio.create_task(dispatcher.evaluate(request("search", k=3)))
    await asyncio.sleep(0.01)
    await dispatcher.stop("limit: the time is spent")
    go.set()
    with pytest.raises(SearchStopped):
        await searching
    assert not (await validating).missing


async def test_draining_lets_running_attempts_end_and_records_them(
    dispatcher: Dispatcher, records: MemoryRecords
) -> None:
    go = asyncio.Event()

    async def hold(key: AttemptKey) -> None:
        await go.wait()

    await dispatcher.add_host(ScriptedHost("one", hold), 3)
    waiting = asyncio.create_task(dispatcher.evaluate(request()))
    await asyncio.sleep(0.01)
    stopping = asyncio.create_task(dispatcher.stop("interrupted", drain=True))
    await asyncio.sleep(0.01)
    go.set()
    await stopping
    with pytest.raises(SearchStopped):
        await waiting
    assert len(records.outcomes) == 3


async def test_the_load_counts_busy_slots_and_waiting_attempts(dispatcher: Dispatcher) -> None:
    go = asyncio.Event()

    async def hold(key: AttemptKey) -> None:
        await go.wait()

    await dispatcher.add_host(ScriptedHost("one", hold), 3)
    waiting = asyncio.create_task(dispatcher.evaluate(request()))
    await asyncio.sleep(0.01)
    load = await dispatcher.load()
    assert (load.busy, load.slots, load.queued) == (3, 3, 13)
    go.set()
    await waiting
    assert (await dispatcher.load()).busy == 0
