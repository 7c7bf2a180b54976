"""A full disk is waited out: nothing is lost, torn or written twice, and it is said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from dispatch_scene import SUITE, ScriptedHost, recorder_of, request

from milo.core.attempt import Outcome
from milo.core.errors import DiskFull, StaleWriter
from milo.core.events import Event, Record, RunResumed
from milo.runtime.dispatch import Dispatcher
from milo.runtime.room import LOOK_S, PATIENCE_S, Room
from milo.testing.landscape import landscape_harness
from milo.testing.memory_records import MemoryRecords


class FullRecords(MemoryRecords):
    """Records whose disk is full until somebody makes room."""

    def __init__(self) -> None:
        super().__init__()
        self.lacking = "the disk lacks 32 MiB"
        self.full = False
        """Whether writes fail although the disk says that it has room (a quota)."""

    def shortage(self) -> str:
        return self.lacking

    def append(self, shard: str, epoch: int, events: Sequence[Event]) -> tuple[Record, ...]:
        self._refuse()
        return super().append(shard, epoch, events)

    def append_attempts(self, outcomes: Sequence[Outcome]) -> None:
        self._refuse()
        super().append_attempts(outcomes)

    def _refuse(self) -> None:
        if self.full:
            raise DiskFull("journal: no space left on the disk")


class Pauses:
    """A sleep that takes no time; `then` happens in the nth of them."""

    def __init__(self, nth: int = 0, then: Callable[[], None] = lambda: None) -> None:
        self.nth = nth
        self.then = then
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) == self.nth:
            self.then()
        await asyncio.sleep(0)


async def test_what_finds_no_room_is_written_once_there_is_some_and_both_are_said() -> None:
    lacking, said, written = ["no room"], list[str](), list[int]()
    pauses = Pauses(3, lacking.clear)
    room = Room(lambda: "".join(lacking), said.append, pauses)
    assert await room.write(lambda: written.append(1) or len(written)) == 1
    assert pauses.seconds == [LOOK_S] * 3 and written == [1]
    assert said[0].startswith("no room: the run waits") and said[-1] == ""


async def test_a_disk_that_stays_full_ends_the_run_and_says_how_long_it_waited() -> None:
    pauses, written = Pauses(), list[int]()
    room = Room(lambda: "no room", lambda _: None, pauses)
    with pytest.raises(DiskFull, match=r"no room .waited for 60 minutes"):
        await room.write(lambda: written.append(1))
    assert sum(pauses.seconds) == PATIENCE_S and not written


@pytest.mark.parametrize("quota", [False, True])
async def test_a_run_with_a_full_disk_waits_tells_it_and_goes_on(
    quota: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What breaks without it: the run ends with its first record that finds no room."""
    monkeypatch.setattr("milo.runtime.room.LOOK_S", 0.0)
    records = FullRecords()
    records.lacking, records.full = "" if quota else records.lacking, quota
    recorder = recorder_of(records)
    dispatcher = Dispatcher(SUITE, recorder, "m", retries=0)
    host = ScriptedHost("one")
    await dispatcher.add_host(host, 4)
    scoring = asyncio.ensure_future(dispatcher.evaluate(request()))
    while not await recorder.troubles():
        await asyncio.sleep(0)
    (told,) = await recorder.troubles()
    assert told.startswith("the disk: ") and "waits for room" in told
    assert not records.outcomes and not scoring.done()
    records.lacking, records.full = "", False
    result = await scoring
    assert len(records.outcomes) == 16 and not result.missing
    assert len(host.runner.ran) == 16, "nothing is run twice"
    assert await recorder.troubles() == ()


async def test_events_that_wait_are_recorded_once_and_in_order() -> None:
    records = FullRecords()
    records.lacking = ""
    recorder = recorder_of(records)
    epoch = await recorder.claim("run")
    records.full = True
    recorder._room._sleep = Pauses(2, lambda: setattr(records, "full", False))
    await recorder.append("run", epoch, [RunResumed(overrides=("a",)), RunResumed()])
    assert [record.event for record in await recorder.watch(-1, 0.0)] == [
        RunResumed(overrides=("a",)),
        RunResumed(),
    ]


async def test_a_writer_that_was_replaced_commits_no_harness_either() -> None:
    """What breaks without it: a stale island puts its child under a name that the new one uses."""
    records = MemoryRecords()
    recorder = recorder_of(records)
    old = await recorder.claim("i1")
    new = await recorder.claim("i1")
    child = landscape_harness({"a": 1})
    with pytest.raises(StaleWriter):
        await recorder.put_harness("i1", old, "i1.1", child, (), "an edit")
    assert not records.harnesses
    await recorder.put_harness("i1", new, "i1.1", child, (), "an edit")
    assert records.harnesses == {"i1.1": child}
