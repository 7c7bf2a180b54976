"""Attempts are claimed before the records are asked: nobody starts one a second time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from dispatch_scene import SUITE, ScriptedHost, parts_of, request

from milo.core.attempt import AttemptKey, Outcome
from milo.runtime.dispatch import Dispatcher
from milo.runtime.parts import SearchStopped
from milo.runtime.recorder import Recorder
from milo.testing.memory_records import MemoryRecords


@pytest.fixture
def records() -> MemoryRecords:
    return MemoryRecords()


class SlowToAnswer(Recorder):
    """A recorder whose answer on what is known takes as long as `gate` stays shut."""

    gate: asyncio.Event
    asked: int

    async def known(self, keys: Sequence[AttemptKey]) -> Mapping[AttemptKey, Outcome]:
        found = await super().known(keys)
        self.asked += len(keys)
        await self.gate.wait()
        return found


@pytest.fixture
def slow(records: MemoryRecords) -> SlowToAnswer:
    recorder = SlowToAnswer(parts_of(records), "m")
    recorder.gate, recorder.asked = asyncio.Event(), 0
    return recorder


async def test_who_asks_while_the_records_are_read_starts_nothing_twice(
    slow: SlowToAnswer,
) -> None:
    host, dispatcher = ScriptedHost("one"), Dispatcher(SUITE, slow, "m", retries=0)
    await dispatcher.add_host(host, 4)
    both = [asyncio.create_task(dispatcher.evaluate(request())) for _ in range(2)]
    while not slow.asked:
        await asyncio.sleep(0)
    slow.gate.set()
    one, two = await asyncio.gather(*both)
    assert one == two
    assert (len(host.runner.ran), slow.asked) == (16, 16)


async def test_a_stop_while_the_records_are_read_starts_nothing(slow: SlowToAnswer) -> None:
    host, dispatcher = ScriptedHost("one"), Dispatcher(SUITE, slow, "m", retries=0)
    await dispatcher.add_host(host, 4)
    late = asyncio.create_task(dispatcher.evaluate(request()))
    while not slow.asked:
        await asyncio.sleep(0)
    await dispatcher.stop("interrupted", drain=True)
    slow.gate.set()
    with pytest.raises(SearchStopped, match="interrupted"):
        await late
    assert host.runner.ran == []


async def test_records_that_cannot_be_read_are_told_to_whoever_waits(slow: SlowToAnswer) -> None:
    async def fail(keys: Sequence[AttemptKey]) -> Mapping[AttemptKey, Outcome]:
        await slow.gate.wait()
        raise OSError("the disk is gone")

    slow.known = fail  # type: ignore[method-assign]
    dispatcher = Dispatcher(SUITE, slow, "m", retries=0)
    both = [asyncio.create_task(dispatcher.evaluate(request())) for _ in range(2)]
    await asyncio.sleep(0)
    slow.gate.set()
    for found in await asyncio.gather(*both, return_exceptions=True):
        assert isinstance(found, OSError)
