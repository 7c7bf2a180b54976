"""A launcher that runs plans in this process: real sandboxes and gateway, no Ray, no terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from milo.app.compose import AppParts, SystemClock
from milo.app.launch import load_seeds, run_path
from milo.app.resuming import on_record
from milo.core.plan import RunPlan
from milo.runtime.driver import Driver, Watcher
from milo.runtime.seeding import Seed
from milo.runtime.stage import InlineStage
from milo.store import RunReader, RunStore, encode_plan


class InlineLauncher:
    """Starts and resumes runs on one event loop; `launched` names their directories."""

    def __init__(self) -> None:
        self.launched: list[Path] = []

    def launch(self, plan: RunPlan) -> int:
        """Run a plan to its end; 1 where nothing was searched."""
        path = run_path(plan).resolve()
        plan = replace(plan, run=str(path))
        RunStore.create(path, path.name, encode_plan(plan), clock=SystemClock()).close()
        return self._drive(plan)

    def resume(self, path: Path, *, allow: Sequence[str]) -> int:
        """Go on with a run."""
        with RunReader(path) as reader:
            found = on_record(reader, reader.population())
        return self._drive(replace(found.plan, run=str(path.resolve())), found.seeds)

    def _drive(self, plan: RunPlan, seeds: Sequence[Seed] = ()) -> int:
        path = Path(plan.run)
        self.launched.append(path)
        parts = AppParts(plan=plan, path=path)
        watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
        driver = Driver(parts, InlineStage(parts), seeds or load_seeds(plan), watcher)
        return 0 if asyncio.run(driver.run()).searched else 1
