"""A run in a real directory, stopped and gone on with: what it keeps, shows and refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from inline import GENES, landscape_seeds, run_inline, stored_parts

from milo.app.inspect import report_of
from milo.app.resuming import on_record
from milo.core.budget import Budget
from milo.core.errors import RunError
from milo.core.plan import AgentsPlan, RunPlan, StrategyPlan
from milo.core.task import Suite
from milo.runtime.seeding import Seed
from milo.store import RunReader
from milo.testing.landscape import landscape_suite

PLAN = RunPlan(
    seed=3,
    strategy=StrategyPlan(patience=2),
    agents=AgentsPlan(mutators=("genes",)),
    budget=Budget(rounds=1, attempts=5000),
)


def suite() -> Suite:
    return landscape_suite(8, GENES)


def recorded(path: Path) -> tuple[RunPlan, tuple[Seed, ...]]:
    with RunReader(path) as reader:
        return on_record(reader, reader.population())


def test_the_report_shows_the_budget_that_the_run_was_given(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run_inline(stored_parts(PLAN, suite(), path), landscape_seeds())
    assert report_of(path).spending.budget == PLAN.budget
    plan, _ = recorded(path)
    assert plan == replace(PLAN, run=str(path))


@pytest.mark.parametrize("islands", [1, 3])
def test_the_seeds_of_a_run_are_read_from_its_own_harnesses(tmp_path: Path, islands: int) -> None:
    """What breaks without it: a seed folder that was edited, moved or deleted blocks the resume."""
    path, strategy = tmp_path / "run", replace(PLAN.strategy, islands=islands)
    run_inline(stored_parts(replace(PLAN, strategy=strategy), suite(), path), landscape_seeds())
    with RunReader(path) as reader:
        lineage = reader.population().lineage
    _, seeds = recorded(path)
    assert [s.harness.digest for s in seeds] == [lineage[f"i{n}.0"].harness for n in (1, 2, 3)]
    assert sorted(s.name for s in seeds) == ["s0", "s1", "s2"]


def test_a_run_whose_tasks_were_edited_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run_inline(stored_parts(PLAN, suite(), path), landscape_seeds())
    tasks = dict(suite().tasks)
    tasks["t001"] = replace(tasks["t001"], instruction="wants b, but says so otherwise")
    edited = replace(suite(), tasks=tasks)
    with pytest.raises(RunError, match="t001 is changed"):
        run_inline(stored_parts(PLAN, edited, path), recorded(path)[1])
