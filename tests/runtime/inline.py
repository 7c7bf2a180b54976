"""Whole runs in this process, kept in real run directories: no Ray, no model, no sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from milo.core.plan import RunPlan
from milo.core.ports import Mutator
from milo.core.task import Suite
from milo.runtime.driver import Driver, Ending, Watcher
from milo.runtime.parts import HostParts
from milo.runtime.seeding import Seed
from milo.runtime.stage import InlineStage
from milo.search.rules import RulesOrchestrator
from milo.store import RunStore, encode_plan
from milo.testing.fake_parts import FakeParts
from milo.testing.landscape import GeneMutator, LandscapeRunner, landscape_harness

GENES = ("a", "b", "c", "d")


class Ticking:
    """A clock that moves a second at each look."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        """The next second."""
        self.time += 1.0
        return self.time


class StoredParts(FakeParts):
    """The fakes' composition over a run directory."""

    def open_records(self) -> RunStore:  # type: ignore[override]
        """The run directory of the plan."""
        return RunStore.open(Path(self.plan.run), clock=Ticking(), part_rows=500)


def landscape_seeds(n: int = 3) -> list[Seed]:
    """Seeds of differing strength."""
    return [
        Seed(name=f"s{i}", harness=landscape_harness({GENES[i]: i % 2}, f"s{i}")) for i in range(n)
    ]


def stored_parts(
    plan: RunPlan, suite: Suite, path: Path, mutator: Mutator | None = None
) -> StoredParts:
    """Parts of a run whose directory is made here if it is not there yet."""
    plan = replace(plan, run=str(path))
    if not (path / "run.json").exists():
        RunStore.create(path, path.name, encode_plan(plan), clock=Ticking()).close()
    known = mutator or GeneMutator(genes=GENES)
    return StoredParts(
        plan=plan,
        the_suite=suite,
        records=None,  # type: ignore[arg-type]
        runner=LandscapeRunner(),
        mutators=dict.fromkeys(plan.agents.mutators, known),
        the_orchestrator=RulesOrchestrator(),
        host_parts=HostParts,
    )


def run_inline(parts: StoredParts, seeds: Sequence[Seed]) -> Ending:
    """Drive a run to its end on one loop."""
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    return asyncio.run(Driver(parts, InlineStage(parts), seeds, watcher).run())
