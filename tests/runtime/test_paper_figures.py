"""`milo report RUN… --figures` over real run directories, finished and broken off."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from inline import GENES, landscape_seeds, run_inline, stored_parts

from milo.app.cli import OK, USER_ERROR, main
from milo.core.budget import Budget
from milo.core.plan import AdmissionPlan, AgentsPlan, ClusterPlan, RunPlan, StrategyPlan
from milo.testing.landscape import landscape_suite

pytest.importorskip("matplotlib")


def search(path: Path, name: str, seed: int, rounds: int) -> Path:
    plan = RunPlan(
        seed=seed,
        strategy=StrategyPlan(
            name=name, orchestrator=rounds > 0, admission=AdmissionPlan(alpha=1.0), patience=1
        ),
        agents=AgentsPlan(mutators=("genes", "genes2")),
        budget=Budget(rounds=rounds),
        cluster=ClusterPlan(slots=8),
    )
    run_inline(stored_parts(plan, landscape_suite(12, GENES), path), landscape_seeds())
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    for seed in (1, 2):
        search(folder / f"none-{seed}", "best_of_seeds", seed, 0)
        search(folder / f"milo-{seed}", "milo", seed, 4)
    journal = search(folder / "dead", "d", 3, 3) / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: len(lines) // 2]) + lines[len(lines) // 2][:20])
    return folder


def test_a_study_becomes_tables_and_figures(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(runs), "--figures", "--into", str(tmp_path / "out")]) == OK
    said = capsys.readouterr().out
    assert "not in the leaderboard: run" in said and "dead" in said
    table = (tmp_path / "out" / "leaderboard.csv").read_text()
    rows = list(csv.DictReader(table.splitlines()))
    assert {r["name"] for r in rows if r["kind"] == "method"} == {"milo", "best_of_seeds"}
    assert {r["runs"] for r in rows if r["kind"] == "method"} == {"2"}
    names = {path.name for path in (tmp_path / "out").iterdir()}
    wanted = {"accuracy-cost", "ablation", "best-so-far", "interventions-milo-1"}
    assert names >= {f"{name}.{kind}" for name in wanted for kind in ("svg", "pdf")}
    curves = (tmp_path / "out" / "best-so-far.svg").read_text()
    assert "milo, mean of 2 runs" in curves


def test_a_dead_run_alone_has_its_curves(runs: Path, tmp_path: Path) -> None:
    assert main(["report", str(runs / "dead"), "--figures", "--into", str(tmp_path / "out")]) == OK
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert "best-so-far.svg" in names and "leaderboard.csv" not in names


def test_figures_are_never_written_into_a_run(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["report", str(runs / "milo-2"), "--figures", "--into", str(runs / "milo-1")])
        == USER_ERROR
    )
    assert "other than a run's" in capsys.readouterr().err


def test_the_report_of_several_runs_is_their_figures(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(runs / "milo-1"), str(runs / "milo-2")]) == USER_ERROR
    assert "--figures" in capsys.readouterr().err
