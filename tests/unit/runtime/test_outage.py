"""A provider that is down is waited for: no proposal is judged by it, and it is said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dispatch_scene import recorder_of

from milo.core.attempt import Usage
from milo.core.errors import ModelError, ModelUnavailable
from milo.core.evidence import Exchange
from milo.runtime.bench import Bench
from milo.runtime.conductor import Meter
from milo.runtime.outage import FIRST_S, LASTING_PATIENCE_S, MOST_S, PATIENCE_S, ModelGone, Outage
from milo.runtime.parts import Peers
from milo.testing.memory_records import MemoryRecords

EXCHANGE = Exchange(request={}, response={}, status=200, seconds=0.0)
DOWN = ModelUnavailable("no answer from m")


class Provider:
    """A model caller that fails so often, and then answers."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls = 0

    async def __call__(
        self, scope: str, messages: Sequence[object], tools: Sequence[object] = ()
    ) -> tuple[str, Usage, tuple[Exchange, ...]]:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return "fine", Usage(output=3, calls=1), (EXCHANGE,)


class Waits:
    """What was said, and how long was slept, which takes no time."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.seconds: list[float] = []

    async def say(self, words: str) -> None:
        self.said.append(words)

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)

    @property
    def outage(self) -> Outage:
        return Outage(self.say, self.sleep)


def always(failure: Exception) -> Callable[[], Any]:
    async def call() -> None:
        raise failure

    return call


async def test_an_answer_at_once_is_waited_for_and_said_to_nobody() -> None:
    waits = Waits()
    text, *_ = await waits.outage.outlast(lambda: Provider()("scope", ()))
    assert text == "fine" and not waits.said and not waits.seconds


async def test_waits_double_up_to_a_limit_and_the_end_is_said() -> None:
    waits, provider = Waits(), Provider(*[DOWN] * 7)
    text, *_ = await waits.outage.outlast(lambda: provider("scope", ()))
    assert text == "fine" and waits.seconds == [5, 10, 20, 40, 80, MOST_S, MOST_S]
    assert waits.said[0] == f"no answer from m; asked again in {FIRST_S:g} s"
    assert waits.said[-1] == ""


@pytest.mark.parametrize(
    ("lasting", "patience_s"), [(False, PATIENCE_S), (True, LASTING_PATIENCE_S)]
)
async def test_a_provider_that_stays_down_ends_the_wait(lasting: bool, patience_s: float) -> None:
    waits, down = Waits(), ModelUnavailable("HTTP 401", lasting=lasting)
    with pytest.raises(ModelGone, match=r"HTTP 401 .asked again for"):
        await waits.outage.outlast(always(down))
    assert patience_s <= sum(waits.seconds) < patience_s + MOST_S


async def test_two_that_wait_for_one_model_wait_no_longer_than_one() -> None:
    inner, outer = Waits(), Waits()
    with pytest.raises(ModelGone):
        await outer.outage.outlast(lambda: inner.outage.outlast(always(DOWN)))
    assert not outer.seconds


async def test_a_request_that_is_refused_is_not_made_again() -> None:
    waits, provider = Waits(), Provider(ModelError("HTTP 400: too long"))
    with pytest.raises(ModelError, match="too long"):
        await waits.outage.outlast(lambda: provider("scope", ()))
    assert provider.calls == 1


async def test_who_is_cut_while_waiting_leaves_no_trouble_behind() -> None:
    recorder = recorder_of(MemoryRecords())
    bench = Bench(cast(Peers, SimpleNamespace(recorder=recorder)), Provider(*[DOWN] * 99), "m/1")
    working = asyncio.ensure_future(bench.complete([]))
    while not await recorder.troubles():
        await asyncio.sleep(0)
    assert (await recorder.troubles())[0].startswith("m/1: no answer from m; asked again in")
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert await recorder.troubles() == ()


async def test_a_mutator_and_the_orchestrator_are_answered_after_the_outage() -> None:
    """What breaks without it: each try of a mutator whose provider is down is a bad proposal."""
    waits, recorder = Waits(), recorder_of(MemoryRecords())
    bench = Bench(cast(Peers, SimpleNamespace(recorder=recorder)), Provider(DOWN), "m/1")
    bench.outage = waits.outage
    assert await bench.complete([]) == ("fine", Usage(output=3, calls=1))
    meter = Meter(Provider(DOWN), waits.outage)
    assert (await meter("scope", []))[0] == "fine"
    assert meter.take() == (Usage(output=3, calls=1), (EXCHANGE,)), "failed calls leave no record"
