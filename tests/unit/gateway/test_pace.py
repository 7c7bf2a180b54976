"""A provider's rate limit, shared without anybody in the middle."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from gateway_scene import FakeTime, MakeLine, ask

from milo.core.ports import Caps, Completion
from milo.gateway.formats import JSON
from milo.gateway.pace import Pace
from milo.gateway.session import Session
from milo.testing.scripted_model import Answer, ScriptedUpstream, in_turn


def test_successes_widen_by_one_a_window_and_a_refusal_halves() -> None:
    pace = Pace(lambda: 10.0, first=8.0)
    for _ in range(8):
        pace.told(200, 0.0)
    assert pace.window == pytest.approx(9.0, abs=0.1)
    pace.told(429, 5.0)
    assert pace.window == pytest.approx(4.5, abs=0.1)


def test_refusals_of_calls_from_before_the_halving_count_once() -> None:
    """A burst that is refused together is one sign, not twenty."""
    pace = Pace(lambda: 10.0, first=64.0)
    for _ in range(20):
        pace.told(429, 9.0)
    assert pace.window == 32.0
    pace.told(429, 11.0)
    assert pace.window == 16.0


async def test_what_is_halved_is_what_was_in_flight() -> None:
    """A window that nothing ever filled says nothing; from 1024 it would take six refusals."""
    pace = Pace(lambda: 10.0)

    async def one() -> None:
        async with pace.turn("s"):
            await settle()
            pace.told(429, 5.0)

    await asyncio.gather(*(one() for _ in range(40)))
    assert pace.window == 20.0


async def test_many_streams_at_once_are_held_up_by_nothing_before_a_refusal() -> None:
    pace, within = Pace(lambda: 0.0), 0

    async def one() -> None:
        nonlocal within
        async with pace.turn("s"):
            within += 1
            await settle()

    tasks = [asyncio.create_task(one()) for _ in range(200)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert within == 200
    await asyncio.gather(*tasks)


def test_the_window_never_closes() -> None:
    time = FakeTime()
    pace = Pace(time.read, first=4.0)
    for second in range(1, 20):
        time.now = float(second)
        pace.told(429, second - 0.5)
    assert pace.window == 1.0


def test_other_failures_say_nothing_about_the_rate() -> None:
    pace = Pace(lambda: 1.0, first=4.0)
    for status in (400, 500, 503):
        pace.told(status, 0.5)
    assert pace.window == 4.0


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_scopes_take_turns_however_many_calls_one_of_them_makes() -> None:
    """A harness that fires a hundred calls must not starve its neighbour's one."""
    pace, order = Pace(lambda: 0.0, first=1.0), []
    gate = asyncio.Event()

    async def one(scope: str) -> None:
        async with pace.turn(scope):
            order.append(scope)
            await gate.wait()

    greedy = [asyncio.create_task(one("greedy")) for _ in range(50)]
    await settle()
    modest = asyncio.create_task(one("modest"))
    await settle()
    gate.set()
    await asyncio.gather(*greedy, modest)
    assert order.index("modest") <= 2


async def test_a_caller_that_is_cut_while_it_waits_gives_its_place_back() -> None:
    pace = Pace(lambda: 0.0, first=1.0)
    entered: list[int] = []

    async def one(nth: int) -> None:
        async with pace.turn(str(nth)):
            entered.append(nth)
            await asyncio.sleep(3600 if nth == 0 else 0)

    tasks = [asyncio.create_task(one(nth)) for nth in range(4)]
    await settle()
    tasks[1].cancel()
    await settle()
    tasks[0].cancel()
    await settle()
    await asyncio.wait(tasks[2:], timeout=5)
    assert entered == [0, 2, 3]


async def test_a_caller_cut_in_the_moment_of_its_turn_leaks_none() -> None:
    pace = Pace(lambda: 0.0, first=1.0)
    holding, released = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with pace.turn("holder"):
            holding.set()
            await released.wait()

    async def take() -> None:
        async with pace.turn("taker"):
            pass

    holder = asyncio.create_task(hold())
    await holding.wait()
    taker = asyncio.create_task(take())
    await settle()
    released.set()
    await holder  # the taker's turn has come, but it has not run yet
    taker.cancel()
    await settle()
    await asyncio.wait_for(take(), 5)


def shares(nodes: int, allowed: int, starts: list[float]) -> list[float]:
    """Calls that each node got through in the second half of 2,000 rounds of one second each,
    before a provider that answers `allowed` of a round's calls, whoever's they are."""
    clock, rng = FakeTime(), np.random.default_rng(5)
    paces = [Pace(clock.read, first=start) for start in starts]
    served: Counter[int] = Counter()
    for round_ in range(2000):
        clock.now = float(round_)
        calls = [node for node in range(nodes) for _ in range(int(paces[node].window))]
        for nth, node in enumerate(rng.permutation(calls)):
            status = 200 if nth < allowed else 429
            paces[node].told(status, round_ - 0.5)
            served[int(node)] += status == 200 and round_ >= 1000
    return [served[node] for node in range(nodes)]


@pytest.mark.parametrize("starts", [[1.0, 1.0, 64.0, 64.0], [100.0, 1.0, 1.0, 1.0]])
def test_nodes_that_know_nothing_of_each_other_end_with_fair_shares(starts: list[float]) -> None:
    """Jain's index is 1 for equal shares and 1/n where one takes all."""
    got = shares(4, 60, starts)
    jain = sum(got) ** 2 / (len(got) * sum(g * g for g in got))
    assert jain > 0.98
    assert sum(got) > 0.7 * 60 * 1000


async def test_a_provider_that_says_when_is_left_alone_until_then(
    make_line: MakeLine, fake_time: FakeTime
) -> None:
    class Limited(ScriptedUpstream):
        async def complete(self, request: JSON, scope: str, nth: int) -> Completion:
            done = await super().complete(request, scope, nth)
            return replace(done, retry_after_s=7.0 if done.status == 429 else 0.0)

    upstream = Limited(in_turn([Answer(status=429), "fine"]))
    pace = Pace(fake_time.read, first=8.0)
    session = Session(make_line(upstream, pace=pace), "s", Caps(), 1000)
    assert (await session.ask(ask())).ok
    assert fake_time.sleeps == [7.0]
    assert pace.window < 8.0


async def test_a_call_that_gets_no_turn_in_its_time_is_the_provider_s_failure(
    make_line: MakeLine,
) -> None:
    """An exhausted rate limit says nothing about the harness: the attempt is tried again."""
    upstream = ScriptedUpstream(in_turn([Answer(latency_s=60)]))
    line = make_line(upstream, pace=Pace(lambda: 0.0, first=1.0))
    first, second = (Session(line, name, Caps(), seconds) for name, seconds in NAMED)
    holding = asyncio.create_task(first.ask(ask()))
    await settle()
    reply = await asyncio.wait_for(second.ask(ask()), 5)
    assert reply.status == 503 and "no turn" in (await second.close()).fault
    assert (await first.close()).fault == ""
    assert (await holding).status == 499


NAMED = (("first", 1000.0), ("second", 0.02))
