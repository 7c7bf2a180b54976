"""Every study of `experiments/` at its smoke size, with a scripted model and no Ray."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from inline_launcher import InlineLauncher
from words import serving, write_suite

from milo.app.launch import BUILT_IN_SEEDS
from milo.core.harness import Harness
from milo.store import RunReader
from milo.testing.scripted_model import ScriptedServer

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
pytestmark = pytest.mark.timeout(300)  # whole studies, one run after another
SWEEPS = {"ablation": 5, "budget_scaling": 2, "output_cap": 2, "peers": 2}
WITHOUT_PEERS = {"peers": ["strategy=milo,best_of_n"]}
"""Words for studies whose strategies are packages that may not be installed."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_suite(tmp_path_factory.mktemp("suite"), 9)


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with serving() as running:
        yield running


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    yield importlib.import_module


def words(server: ScriptedServer, suite: Path) -> list[str]:
    return [
        f"suite={suite}",
        "model=openai/scripted",
        f"model.base_url={server.base_url}",
        "mutators=operators",
        "cluster.slots=4",
    ]


@pytest.mark.parametrize("name", sorted(SWEEPS))
def test_a_sweep_runs_every_job_and_ends_with_a_table(
    name: str,
    load: object,
    server: ScriptedServer,
    suite: Path,
    workdir: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    study: ModuleType = load(name)  # type: ignore[operator]
    launcher = InlineLauncher()
    more = WITHOUT_PEERS.get(name, [])
    argv = ["--smoke", "--into", "out", *words(server, suite), *more]
    assert study.main(argv, launcher) == 0
    assert len(launcher.launched) == SWEEPS[name]
    printed = capsys.readouterr().out
    assert study.STUDY.question in printed and "test split, 3 tasks" in printed
    assert study.main(argv, launcher) == 0
    assert len(launcher.launched) == SWEEPS[name], "finished jobs are not run again"


def evolve(folder: Path) -> None:
    """An exported winner that differs from every seed, as an earlier start of the study left it."""
    shutil.copytree(BUILT_IN_SEEDS / "bare", folder, ignore=shutil.ignore_patterns("__pycache__"))
    main = folder / "main.py"
    main.write_text(f"{main.read_text()}\n# evolved\n")


def test_a_transfer_scores_the_evolved_harness_unchanged_on_another_suite(
    load: object,
    server: ScriptedServer,
    suite: Path,
    workdir: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = write_suite(workdir / "other", 12)
    study: ModuleType = load("transfer_suite")  # type: ignore[operator]
    launcher = InlineLauncher()
    evolve(workdir / "out" / "evolved")
    argv = ["--smoke", "--into", "out", "--to", f"suite={other}", *words(server, suite)]
    assert study.main(argv, launcher) == 0
    assert [path.name for path in launcher.launched] == ["search", "transfer"]
    with RunReader(workdir / "out" / "transfer") as reader:
        tested = {n.harness for n in reader.population().lineage if n.evaluation("test")}
    assert Harness.from_dir(workdir / "out" / "evolved").digest in tested
    assert "best_of_seeds" in capsys.readouterr().out


def test_a_transfer_to_another_model_scores_with_that_model(
    load: object,
    server: ScriptedServer,
    suite: Path,
    workdir: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    study: ModuleType = load("transfer_model")  # type: ignore[operator]
    launcher = InlineLauncher()
    argv = ["--smoke", "--into", "out", "--to", "model=openai/other", *words(server, suite)]
    assert study.main(argv, launcher) == 0
    with RunReader(workdir / "out" / "transfer") as reader:
        started = reader.population().started
    assert started is not None and "openai/other" in started.model
    assert "test split, 3 tasks" in capsys.readouterr().out


def test_a_winner_that_is_a_seed_is_no_evolved_harness(load: object, tmp_path: Path) -> None:
    study: ModuleType = load("study")  # type: ignore[operator]
    evolve(tmp_path / "evolved")
    bare = str(BUILT_IN_SEEDS / "bare")
    assert study.is_among(Path(bare), [bare])
    assert not study.is_among(tmp_path / "evolved", [bare])


def test_a_users_word_replaces_the_studys_of_the_same_key(load: object) -> None:
    study: ModuleType = load("study")  # type: ignore[operator]
    assert study.laid_over(("a=1", "admission.alpha=1"), ("strategy.admission.alpha=0.1",)) == [
        "a=1",
        "strategy.admission.alpha=0.1",
    ]
