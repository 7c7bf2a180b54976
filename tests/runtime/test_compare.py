"""`milo compare` over real run directories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from inline import GENES, landscape_seeds, run_inline, stored_parts

from milo.app.cli import main
from milo.core.budget import Budget
from milo.core.plan import AdmissionPlan, AgentsPlan, ClusterPlan, RunPlan, StrategyPlan
from milo.testing.landscape import landscape_suite


def run_of(path: Path, name: str, seed: int, *, rounds: int, test: bool = True) -> Path:
    plan = RunPlan(
        seed=seed,
        strategy=StrategyPlan(
            name=name, orchestrator=False, admission=AdmissionPlan(alpha=1.0), patience=2
        ),
        agents=AgentsPlan(mutators=("genes",)),
        budget=Budget(rounds=rounds),
        cluster=ClusterPlan(slots=8),
    )
    suite = landscape_suite(16, GENES, k=2)
    if not test:
        splits = type(suite.splits)(search=suite.splits.search, validation=suite.splits.validation)
        suite = type(suite)(name=suite.name, tasks=suite.tasks, splits=splits, k=2)
    run_inline(stored_parts(plan, suite, path), landscape_seeds())
    return path


@pytest.fixture(scope="module")
def multirun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods, two seeds each: no search at all, and four rounds of it."""
    folder = tmp_path_factory.mktemp("multirun")
    for seed in (1, 2):
        run_of(folder / f"none-{seed}", "best_of_seeds", seed, rounds=0)
        run_of(folder / f"d-{seed}", "d", seed, rounds=4)
    return folder


def compared(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["compare", *words]) == 0
    return capsys.readouterr().out


def test_a_multirun_is_compared_by_method(
    multirun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = json.loads(compared(capsys, str(multirun), "--json"))
    assert board["split"] == "test" and board["tasks"] == 16
    assert board["rows"][0]["name"] == "d"
    assert {row["name"] for row in board["rows"]} == {
        "d",
        "best_of_seeds",
        "seed s0",
        "seed s1",
        "seed s2",
    }
    assert {row["runs"] for row in board["rows"]} == {0, 2}
    searched = {row["name"]: row["searched_attempts"] for row in board["rows"]}
    assert searched["d"] > searched["best_of_seeds"] > 0


def test_each_run_gets_a_row_of_its_own_where_that_is_asked(
    multirun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = json.loads(compared(capsys, str(multirun), "--each", "--json"))
    names = {row["name"] for row in board["rows"] if row["runs"]}
    assert names == {
        "d (d-1)",
        "d (d-2)",
        "best_of_seeds (none-1)",
        "best_of_seeds (none-2)",
    }


def test_the_table_names_baseline_and_unresolved_differences(
    multirun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = compared(capsys, str(multirun / "d-1"), str(multirun / "none-1"))
    assert "baseline" in text and "test split, 16 tasks" in text
    assert "PR" in text and "p = " in text


def test_a_run_without_a_test_split_is_compared_on_validation_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run_of(tmp_path / "plain", "d", 1, rounds=1, test=False)
    text = compared(capsys, str(path))
    assert "validation split" in text and "optimistic" in text


def test_runs_without_a_winner_are_left_out_by_name(
    multirun: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = RunPlan(strategy=StrategyPlan(), agents=AgentsPlan(mutators=("genes",)))
    stored_parts(plan, landscape_suite(4, GENES), tmp_path / "unborn")
    text = compared(capsys, str(multirun / "d-1"), str(tmp_path / "unborn"))
    assert "left out" in text and "unborn" in text
    assert main(["compare", str(tmp_path / "unborn")]) == 2
    assert "at least one run with a scored winner" in capsys.readouterr().err
