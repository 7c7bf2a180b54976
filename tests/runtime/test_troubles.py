"""Runs whose disk fills up, or whose mutator's provider goes down: they wait, and end as others."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from inline import GENES, StoredParts, Ticking, landscape_seeds, run_inline, stored_parts

from milo.app.resuming import on_record
from milo.core.attempt import Usage
from milo.core.budget import Budget
from milo.core.errors import ModelUnavailable
from milo.core.events import Event, ProposalSentBack, RunStarted
from milo.core.evidence import Brief, Exchange, Proposal
from milo.core.moves import Consultation
from milo.core.plan import AgentsPlan, RunPlan, StrategyPlan
from milo.core.ports import PopulationView, Workshop
from milo.core.task import Suite
from milo.runtime.driver import Driver, Watcher
from milo.runtime.outage import ModelGone
from milo.runtime.parts import Load, ModelCaller
from milo.runtime.stage import InlineStage
from milo.store import Disk, RunReader, RunStore
from milo.testing.landscape import GeneMutator, landscape_suite

PLAN = RunPlan(
    seed=3,
    strategy=StrategyPlan(patience=2, islands=1),  # of several, one would see how far others are
    agents=AgentsPlan(mutators=("genes",)),
    budget=Budget(rounds=3, attempts=5000),
)
EXCHANGE = Exchange(request={}, response={}, status=200, seconds=0.0)


def suite() -> Suite:
    return landscape_suite(8, GENES)


def decided(path: Path) -> dict[str, list[Event]]:
    """Every shard's events in order, without what names the run."""
    found: dict[str, list[Event]] = {}
    with RunReader(path) as reader:
        assert not reader.warnings
        for record in reader.records():
            if not isinstance(record.event, RunStarted):
                found.setdefault(record.shard, []).append(record.event)
    return found


@dataclass
class FillingDisk:
    """A disk that is full at every nth write, and for two more tries; it says so every other
    time. What does not fit is written in part."""

    every: int
    writes: int = 0
    left: int = 0
    refused: int = 0

    def write(self, descriptor: int, data: bytes) -> int:
        self.writes += 1
        if self.writes % self.every == 0:
            self.left = 3
            os.write(descriptor, data[: len(data) // 2])
        if self.left:
            self.left -= 1
            self.refused += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.write(descriptor, data)

    def free(self, path: Path) -> int:
        if not self.left or self.writes % (2 * self.every):
            return 1 << 40
        self.left -= 1
        return 0


class FillingParts(StoredParts):
    """A run directory on such a disk."""

    disk: FillingDisk

    def open_records(self) -> RunStore:  # type: ignore[override]
        """As the disk lets it be opened."""
        self.disk = FillingDisk(every=7)
        disk = Disk(write=self.disk.write, free=self.disk.free)
        return RunStore.open(Path(self.plan.run), clock=Ticking(), part_rows=50, disk=disk)


def test_a_run_whose_disk_fills_up_again_and_again_ends_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What breaks without it: the first write without room ends the run."""
    monkeypatch.setattr("milo.runtime.room.LOOK_S", 0.0)
    run_inline(stored_parts(PLAN, suite(), tmp_path / "calm"), landscape_seeds())
    calm = stored_parts(PLAN, suite(), tmp_path / "full")
    full = FillingParts(**{name: getattr(calm, name) for name in calm.__dataclass_fields__})
    ending = run_inline(full, landscape_seeds())
    assert ending.searched and full.disk.refused > 20
    assert decided(tmp_path / "full") == decided(tmp_path / "calm")
    with RunReader(tmp_path / "full") as reader, RunReader(tmp_path / "calm") as other:
        assert reader.attempts.count == other.attempts.count


@dataclass
class Caller:
    """A model that is down for the first calls."""

    failures: int
    error: ModelUnavailable = field(default_factory=lambda: ModelUnavailable("nobody answers"))
    scopes: list[str] = field(default_factory=list)

    async def __call__(
        self, scope: str, messages: Sequence[object], tools: Sequence[object] = ()
    ) -> tuple[str, Usage, tuple[Exchange, ...]]:
        self.scopes.append(scope)
        if self.failures:
            self.failures -= 1
            raise self.error
        return "go on", Usage(calls=1), (EXCHANGE,)


class AskingMutator:
    """Does what another does, once its model has answered."""

    name = "asking"

    def __init__(self) -> None:
        self._inner = GeneMutator(genes=GENES)

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """The other's proposal."""
        await workshop.complete([{"role": "user", "content": "May I?"}])
        return await self._inner.propose(brief, workshop)


class CalledParts(StoredParts):
    """Every mutator has the one caller."""

    caller: Caller

    def model_caller(self, mutator: str) -> ModelCaller:
        """The one."""
        return self.caller


def called(path: Path, caller: Caller) -> CalledParts:
    calm = stored_parts(PLAN, suite(), path, AskingMutator())
    parts = CalledParts(**{name: getattr(calm, name) for name in calm.__dataclass_fields__})
    parts.caller = caller
    return parts


def test_a_provider_that_is_down_for_a_while_costs_no_proposal_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What breaks without it: each of its tries is a bad proposal, and rounds end without a
    child."""
    monkeypatch.setattr("milo.runtime.outage.FIRST_S", 0.6)  # the driver looks twice a second
    monkeypatch.setattr("milo.runtime.outage.MOST_S", 0.6)
    run_inline(called(tmp_path / "calm", Caller(0)), landscape_seeds())
    parts, told = called(tmp_path / "down", Caller(6)), set[str]()

    def look(load: Load, spend: object) -> None:
        told.update(load.troubles)

    watcher = Watcher(on_records=lambda _: None, on_load=look)
    asyncio.run(Driver(parts, InlineStage(parts), landscape_seeds(), watcher).run())
    assert decided(tmp_path / "down") == decided(tmp_path / "calm")
    assert any("mutator/i1.1/0: nobody answers; asked again in" in words for words in told)


def test_a_provider_that_stays_down_ends_the_run_which_then_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("milo.runtime.outage.FIRST_S", 0.001)
    monkeypatch.setattr("milo.runtime.outage.PATIENCE_S", 0.002)
    parts = called(tmp_path / "down", Caller(10**6))
    with pytest.raises(ModelGone, match="nobody answers"):
        run_inline(parts, landscape_seeds())
    events = [event for shard in decided(tmp_path / "down").values() for event in shard]
    assert not any(isinstance(event, ProposalSentBack) for event in events)
    with RunReader(tmp_path / "down") as reader:
        seeds = on_record(reader, reader.population()).seeds
    run_inline(called(tmp_path / "down", Caller(0)), seeds)
    run_inline(called(tmp_path / "calm", Caller(0)), landscape_seeds())
    down, calm = decided(tmp_path / "down"), decided(tmp_path / "calm")
    assert {name: down[name] for name in down if name != "run"} == {
        name: calm[name] for name in calm if name != "run"
    }


def test_the_hours_of_a_run_end_also_while_its_mutators_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What breaks without it: a run waits for a provider past what it may take."""
    parts = called(tmp_path / "down", Caller(10**6))
    parts.plan = replace(parts.plan, budget=replace(PLAN.budget, hours=1.0))
    run_for_s = 3600.0

    def look(load: Load, spend: object) -> None:
        if load.troubles and load.deadline is not None:
            parts.clock.time = load.deadline + run_for_s

    watcher = Watcher(on_records=lambda _: None, on_load=look)
    driver = Driver(parts, InlineStage(parts), landscape_seeds(), watcher)
    ending = asyncio.run(asyncio.wait_for(driver.run(), 20))
    assert "time" in ending.reason and not ending.interrupted


class SilentOrchestrator:
    """Never answers."""

    async def consult(self, view: PopulationView, island: str) -> Consultation:
        """Waits for what does not come."""
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


def test_the_hours_of_a_run_end_also_while_its_orchestrator_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("milo.runtime.island_shell.GRACE_S", 0.01)
    strategy = StrategyPlan(patience=1, islands=1)
    plan = replace(PLAN, strategy=strategy, budget=Budget(hours=1.0))
    parts = stored_parts(plan, suite(), tmp_path / "run")
    parts.the_orchestrator = SilentOrchestrator()

    def look(load: Load, spend: object) -> None:
        asks = any(doing.what.startswith("consulting") for doing in load.doing)
        if asks and load.deadline is not None:
            parts.clock.time = load.deadline + 1.0

    watcher = Watcher(on_records=lambda _: None, on_load=look)
    driver = Driver(parts, InlineStage(parts), landscape_seeds(), watcher)
    ending = asyncio.run(asyncio.wait_for(driver.run(), 20))
    assert "time" in ending.reason and ending.searched
