"""A host: what it does with work that is under way when it closes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest
from dispatch_scene import SUITE, parts_of

from milo.core.attempt import AttemptKey
from milo.core.ports import AttemptJob, AttemptResult
from milo.runtime.host import Host
from milo.runtime.parts import PeerLost
from milo.testing.landscape import landscape_harness
from milo.testing.memory_records import MemoryRecords


class Endless:
    """A runner whose attempts last until they are cut, and then take a while to clear up."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.begun = asyncio.Event()

    async def run(self, job: AttemptJob) -> AttemptResult:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.told.append("container removed")
        raise AssertionError("an endless attempt ended")


async def test_a_host_that_closes_cuts_its_attempts_and_waits_for_their_end() -> None:
    """What breaks without it: the containers outlive a run whose recorder was killed."""
    runner = Endless()

    async def closed() -> None:
        runner.told.append("sandbox closed")

    opened = SimpleNamespace(runner=runner, model="m", description="", close=closed)
    host = Host("one", replace(parts_of(MemoryRecords()), host_parts=lambda **_: opened))
    await host.start()
    task, harness = SUITE.tasks[SUITE.splits.search[0]], landscape_harness({"a": 1})
    digests = {"harness": harness.digest, "task_digest": task.digest}
    key = AttemptKey(**digests, task="t", model="m", index=0)
    attempt = asyncio.create_task(host.run(key, harness, task))
    await runner.begun.wait()
    await host.close()
    assert runner.told == ["container removed", "sandbox closed"]
    with pytest.raises(asyncio.CancelledError):
        await attempt
    with pytest.raises(PeerLost, match="host one is not open"):
        await host.run(key, harness, task)
