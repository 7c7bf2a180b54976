"""A host that dies is replaced in every part of a run: also before the search, and in the test."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from inline import landscape_seeds, stored_parts

from milo.core.budget import Budget
from milo.core.harness import Harness
from milo.core.plan import RunPlan
from milo.core.ports import AttemptJob, AttemptResult
from milo.runtime import driver
from milo.runtime.driver import Driver, Watcher
from milo.runtime.parts import PeerLost
from milo.runtime.stage import InlineStage
from milo.testing.landscape import LandscapeRunner, landscape_suite

SUITE = landscape_suite(8, ("a", "b", "c", "d"))


class MortalRunner(LandscapeRunner):
    """The runner of a host that dies once, of its first smoke test or its first test attempt."""

    def __init__(self, dies_of: str) -> None:
        super().__init__()
        self._dies_of = dies_of

    async def smoke(self, harness: Harness) -> str:
        self._die_of("smoke")
        return await super().smoke(harness)

    async def run(self, job: AttemptJob) -> AttemptResult:
        if job.key.task in SUITE.splits.test:
            self._die_of("test")
        return await super().run(job)

    def _die_of(self, cause: str) -> None:
        if self._dies_of == cause:
            self._dies_of = ""
            raise PeerLost("the host died")


class TendedStage(InlineStage):
    """A stage whose one host comes back where it is missed, as on a cluster."""

    back = 0

    async def tend(self) -> None:
        if not await self.peers.dispatcher.hosts():
            assert self._host is not None
            self.back += 1
            await self.peers.dispatcher.add_host(self._host, 4)


@pytest.mark.parametrize("dies_of", ["smoke", "test"])
def test_a_host_that_dies_outside_the_search_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_of: str
) -> None:
    """What breaks without it: the run waits for ever."""
    monkeypatch.setattr(driver, "TICK_S", 0.01)
    parts = stored_parts(RunPlan(budget=Budget(rounds=1)), SUITE, tmp_path / "run")
    parts.runner = MortalRunner(dies_of)
    stage = TendedStage(parts)
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    run = Driver(parts, stage, landscape_seeds(), watcher).run()
    ending = asyncio.run(asyncio.wait_for(run, 60))
    assert ending.searched
    assert stage.back == 1
