"""The mutator without a model mends planted defects in runs of the search itself.

Each patient is the seed of a small run on one island: its attempts are real ones in a sandbox over
the scripted model, and the children are admitted or not as in any run.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from patients import PATIENTS, Patient, harness_of, hospital, task

from milo.agents.operators.mutator import OperatorMutator
from milo.core.budget import Budget
from milo.core.events import Verdict
from milo.core.plan import AdmissionPlan, AgentsPlan, ClusterPlan, RunPlan, StrategyPlan
from milo.core.population import Population
from milo.core.ports import AttemptRunner
from milo.core.task import Splits, Suite
from milo.runtime.driver import Driver, Watcher
from milo.runtime.parts import HostParts
from milo.runtime.seeding import Seed
from milo.runtime.stage import InlineStage
from milo.search.rules import RulesOrchestrator
from milo.testing.fake_parts import FakeParts
from milo.testing.memory_records import MemoryRecords

ROUNDS = 8
BAR = 5
BEDS = 2
"""Patients at once: attempts that share two cores with more would end with their time."""
POOL = ("operators",)
SUITE = Suite(
    name="sums",
    tasks={name: task(name, seconds=15) for name in ("searched", "validated")},
    splits=Splits(search=("searched",), validation=("validated",)),
    k=1,
)


@dataclass(kw_only=True)
class Ward(FakeParts):
    """Parts whose host runs real attempts."""

    real_runner: AttemptRunner

    async def open_host(self, name: str) -> Any:
        async def nothing() -> None:
            return None

        return HostParts(
            runner=self.real_runner,
            model="scripted",
            description="real attempts",
            shell=no_shell,
            close=nothing,
        )


async def no_shell(*asked: object) -> Any:
    raise AssertionError("operators need no shell")


def cure(records: MemoryRecords) -> str:
    """The edits that led to the first admitted child that solves the task; "" for none."""
    lineage = Population.of(records.journal).lineage
    for node in lineage:
        solves = any(score.reward == 1.0 for score in node.evaluation("search").values())
        if solves and node.verdict is Verdict.ADMITTED:
            path = lineage.path_from_seed(node.candidate)[1:]
            return " > ".join(lineage[candidate].change.title for candidate in path)
    return ""


async def treated(patient: Patient, runner: AttemptRunner, seed: int) -> str:
    """Search from a patient until it is cured, or for some rounds; the cure."""
    records = MemoryRecords()
    plan = RunPlan(
        run=patient.name,
        seed=seed,
        strategy=StrategyPlan(islands=1, orchestrator=False, admission=AdmissionPlan(alpha=1.0)),
        agents=AgentsPlan(mutators=POOL),
        budget=Budget(rounds=ROUNDS),
        cluster=ClusterPlan(slots=2),
    )
    parts = Ward(
        plan=plan,
        the_suite=SUITE,
        records=records,
        runner=None,  # type: ignore[arg-type]
        mutators={name: OperatorMutator(name) for name in POOL},
        the_orchestrator=RulesOrchestrator(),
        host_parts=HostParts,
        real_runner=runner,
    )
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    seeds = [Seed(name=patient.name, harness=harness_of(patient))]
    running = asyncio.ensure_future(Driver(parts, InlineStage(parts), seeds, watcher).run())
    while not running.done() and not cure(records):
        await asyncio.wait({running}, timeout=0.2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return cure(records)


async def cures(folder: Path, seed: int) -> dict[str, str]:
    """What cured each patient, by its name; "" for those that were not."""
    beds = asyncio.Semaphore(BEDS)

    async def one(patient: Patient) -> str:
        async with beds:
            return await treated(patient, runner, seed)

    async with hospital(folder) as runner:
        found = await asyncio.gather(*map(one, PATIENTS))
    return {patient.name: told for patient, told in zip(PATIENTS, found, strict=True)}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", [0])
def test_operators_mend_most_planted_defects_in_a_run_without_a_model(seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="repairs-") as folder:
        found = asyncio.run(cures(Path(folder), seed))
    cured = {name: told for name, told in found.items() if told}
    assert len(cured) >= BAR, found
