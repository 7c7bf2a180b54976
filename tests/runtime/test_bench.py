"""`milo bench` on a small suite with a scripted model: a search, then the held-out rounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from inline import Ticking
from inline_launcher import InlineLauncher
from words import serving, write_suite

from milo.app.benching import Bench, EvoBenchOptions, HarnessOptOptions
from milo.app.cli import main
from milo.app.protocol_tools import launch_with
from milo.core.errors import ConfigError, RunError
from milo.core.plan import RunPlan
from milo.runtime.stage import InlineStage
from milo.store import RunReader, RunStore, encode_plan
from milo.testing.scripted_model import ScriptedServer


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_suite(tmp_path_factory.mktemp("suite"), 15)


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with serving() as running:
        yield running


@pytest.fixture
def launcher() -> InlineLauncher:
    return InlineLauncher()


@pytest.fixture
def bench(launcher: InlineLauncher) -> Bench:
    return Bench(launch=launch_with(launcher), stage_of=InlineStage)


def words(server: ScriptedServer, run: Path) -> list[str]:
    return [
        f"run={run}",
        "model=openai/scripted",
        f"model.base_url={server.base_url}",
        "mutators=operators",
        "strategy=b",
        "admission.alpha=1",
        "tracking=off",
        "cluster.slots=4",
    ]


def test_harnessopt_scores_seed_and_nominee_thrice_and_keeps_to_four_passes(
    bench: Bench,
    launcher: InlineLauncher,
    server: ScriptedServer,
    suite: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = words(server, tmp_path / "run")
    assert bench.harnessopt(str(suite), given, HarnessOptOptions(), as_json=True) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["cases"], row["rounds"], row["seed"]) == (6, 3, "bare")
    assert row["exceeded"] == [] and max(row["passes"].values()) <= 4
    with RunReader(tmp_path / "run") as reader:
        population = reader.population()
        started, winner = population.started, population.winner
        assert started is not None and winner is not None
        assert (len(started.search), len(started.validation), len(started.test)) == (3, 6, 6)
        held_out = {
            (o.key.harness, o.key.task, o.key.index)
            for o in reader.attempts.iter()
            if o.key.task in started.test
        }
    candidates = {harness for harness, _, _ in held_out}
    assert len(held_out) == len(candidates) * 6 * 3
    attempts = launcher.launched[:]
    assert bench.harnessopt(str(suite), given, HarnessOptOptions(), as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == row, "the same command repeats the row"
    assert launcher.launched == attempts, "and runs nothing again"


def test_evobench_reports_overall_and_anytime_value(
    bench: Bench,
    server: ScriptedServer,
    suite: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = EvoBenchOptions(iterations=3, every_attempt=("",), attempts=2)
    assert bench.evobench(str(suite), words(server, tmp_path / "run"), options, as_json=False) == 0
    text = capsys.readouterr().out
    assert "AnytimeVal" in text and "of 3 iterations" in text


def test_a_finished_run_of_another_configuration_is_not_taken_for_this_one(
    bench: Bench, server: ScriptedServer, suite: Path, tmp_path: Path
) -> None:
    given = [*words(server, tmp_path / "run"), "suite.test=2"]
    options = HarnessOptOptions(passes=2)
    bench.harnessopt(str(suite), given, options, as_json=True)
    with pytest.raises(RunError, match="same configuration"):
        bench.harnessopt(str(suite), [*given, "seed=5"], options, as_json=True)


def test_nor_is_a_stopped_one_gone_on_with(
    launcher: InlineLauncher, server: ScriptedServer, suite: Path, tmp_path: Path
) -> None:
    """What breaks without it: another configuration's search is scored as this one's."""
    options = HarnessOptOptions(passes=2)

    def stop_at_once(plan: RunPlan) -> int:
        path = Path(plan.run)
        RunStore.create(path, path.name, encode_plan(plan), clock=Ticking()).close()
        return 1

    stopping = Bench(launch=stop_at_once, stage_of=InlineStage)
    given = [*words(server, tmp_path / "run"), "suite.test=2"]
    assert stopping.harnessopt(str(suite), given, options, as_json=True) == 1
    bench = Bench(launch=launch_with(launcher), stage_of=InlineStage)
    with pytest.raises(RunError, match="same configuration"):
        bench.harnessopt(str(suite), [*given, "seed=5"], options, as_json=True)
    assert not launcher.launched


@pytest.mark.parametrize(
    ("more", "match"),
    [
        (["suite.test=0"], "held-out tasks"),
        (["suite=deskwork"], "named once"),
        (["seeds=a,b"], "one pinned seed"),
    ],
)
def test_what_a_protocol_can_not_be_is_refused_before_anything_runs(
    bench: Bench,
    launcher: InlineLauncher,
    server: ScriptedServer,
    suite: Path,
    tmp_path: Path,
    more: list[str],
    match: str,
) -> None:
    given = [*words(server, tmp_path / "run"), *more]
    with pytest.raises(ConfigError, match=match):
        bench.harnessopt(str(suite), given, HarnessOptOptions(), as_json=False)
    assert not launcher.launched


@pytest.mark.parametrize("weights", ["nosuch=1", "=one"])
def test_weights_that_fit_no_family_are_refused_by_the_command(
    weights: str, server: ScriptedServer, suite: Path, tmp_path: Path
) -> None:
    line = ["bench", "evobench", "--weights", weights, str(suite), *words(server, tmp_path / "r")]
    assert main(line, launcher=InlineLauncher()) == 2
    assert not (tmp_path / "r").exists()
