"""A run in a real directory, stopped and gone on with: what it keeps, shows and refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from inline import GENES, landscape_seeds, run_inline, stored_parts

from milo.app.following import Following
from milo.app.inspect import report_of
from milo.app.launch import FAILED, INTERRUPTED, OK, _conclude, _remove_if_never_started
from milo.app.resuming import on_record
from milo.core.budget import Budget
from milo.core.errors import RunError
from milo.core.plan import AgentsPlan, RunPlan, StrategyPlan
from milo.core.task import Suite
from milo.runtime.driver import Ending
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


def test_a_run_that_was_asked_for_no_rounds_ends_well_without_a_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What breaks without it: a multirun counts its control, best_of_seeds, among the failed."""
    path, plan = tmp_path / "run", replace(PLAN, budget=Budget(rounds=0))
    ending = run_inline(stored_parts(plan, suite(), path), landscape_seeds())
    assert not ending.searched
    assert _conclude(plan, path, ending, (), cast(Following, Nobody())) == OK
    assert _conclude(PLAN, path, ending, (), cast(Following, Nobody())) == FAILED
    assert "Nothing was searched" in capsys.readouterr().out


def test_a_run_that_was_stopped_before_it_began_is_not_said_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    stored_parts(PLAN, suite(), path)
    ending = Ending(reason="stopped at once", interrupted=True)
    assert _conclude(PLAN, path, ending, (), cast(Following, Nobody())) == INTERRUPTED
    assert "milo resume" not in capsys.readouterr().out
    _remove_if_never_started(path)
    assert not path.exists()


def test_a_run_that_has_attempts_on_record_is_never_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    run_inline(stored_parts(PLAN, suite(), path), landscape_seeds())
    (path / "journal.jsonl").write_text("")
    ending = Ending(reason="stopped at once", interrupted=True)
    assert _conclude(PLAN, path, ending, (), cast(Following, Nobody())) == INTERRUPTED
    assert f"milo resume {path}" in capsys.readouterr().out
    _remove_if_never_started(path)
    assert attempts_in(path) > 0


class Nobody:
    """Follows a run in no way."""

    def close(self, summary: Mapping[str, object]) -> str:
        """Nothing to end."""
        return ""


def attempts_in(path: Path) -> int:
    with RunReader(path) as reader:
        return reader.attempts.count
