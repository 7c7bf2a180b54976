"""Multirun: every job runs, failures are named at once, and a second start goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from milo.app.multirun import Multirun, prepare
from milo.app.run_progress import RunProgress
from milo.core.errors import ConfigError, ModelError, RunError
from milo.core.plan import RunPlan

pytestmark = pytest.mark.usefixtures("no_keys", "workdir")

WORDS = ["seed=1,2,3", "budget=quick"]
FOLDER = Path("multirun/one")


@dataclass
class FakeLauncher:
    """Runs nothing; remembers what it was asked, and fails where it is told to."""

    faults: dict[int, object] = field(default_factory=dict)
    launched: list[RunPlan] = field(default_factory=list)
    resumed: list[Path] = field(default_factory=list)

    def launch(self, plan: RunPlan) -> int:
        self.launched.append(plan)
        fault = self.faults.get(plan.seed, 0)
        if isinstance(fault, BaseException):
            raise fault
        assert isinstance(fault, int)
        return fault

    def resume(self, path: Path, *, allow: Sequence[str]) -> int:
        self.resumed.append(path)
        return 0


def multirun(launcher: FakeLauncher, states: dict[str, RunProgress] | None = None) -> Multirun:
    def progress_of(path: Path) -> RunProgress:
        return (states or {}).get(path.name, RunProgress.ABSENT)

    return Multirun(launcher=launcher, progress_of=progress_of)


def test_each_job_runs_in_its_own_directory() -> None:
    launcher = FakeLauncher()
    assert multirun(launcher).run(WORDS, FOLDER, terminal=None) == 0
    assert [plan.seed for plan in launcher.launched] == [1, 2, 3]
    assert [plan.run for plan in launcher.launched] == [
        f"multirun/one/{n}-seed={n + 1}" for n in range(3)
    ]


@pytest.mark.parametrize(
    "fault", [1, ModelError("the provider is down"), ValueError("a fault of ours")]
)
def test_one_jobs_failure_is_named_and_the_others_go_on(
    fault: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = FakeLauncher(faults={1: fault})
    said_before_next: list[str] = []
    original = launcher.launch

    def launch(plan: RunPlan) -> int:
        if plan.seed == 2:
            said_before_next.append(capsys.readouterr().err)
        return original(plan)

    monkeypatch.setattr(launcher, "launch", launch)
    assert multirun(launcher).run(WORDS, FOLDER, terminal=None) == 1
    assert len(launcher.launched) == 3
    assert "error: job 0-seed=1" in said_before_next[0]
    out = capsys.readouterr().out
    assert "3 jobs, 1 failed" in out
    assert any(line.startswith("0-seed=1") and "failed" in line for line in out.splitlines())


def test_finished_jobs_are_skipped_and_stopped_ones_resumed() -> None:
    launcher = FakeLauncher()
    states = {"0-seed=1": RunProgress.FINISHED, "1-seed=2": RunProgress.STOPPED}
    assert multirun(launcher, states).run(WORDS, FOLDER, terminal=None) == 0
    assert [plan.seed for plan in launcher.launched] == [3]
    assert launcher.resumed == [FOLDER / "1-seed=2"]


def test_a_multirun_goes_on_without_its_words_being_typed_again() -> None:
    multirun(FakeLauncher()).run(WORDS, FOLDER, terminal=None)
    again = FakeLauncher()
    assert multirun(again).run([], FOLDER, terminal=None) == 0
    assert len(again.launched) == 3


def test_other_words_for_the_same_directory_are_refused() -> None:
    multirun(FakeLauncher()).run(WORDS, FOLDER, terminal=None)
    with pytest.raises(RunError, match="seed=1,2,3"):
        prepare(["seed=1,2", "budget=quick"], FOLDER, terminal=None)


def test_a_directory_that_holds_something_else_is_refused() -> None:
    FOLDER.mkdir(parents=True)
    (FOLDER / "thesis.txt").write_text("do not touch")
    with pytest.raises(RunError, match=r"multirun\.json"):
        prepare(WORDS, FOLDER, terminal=None)


def test_a_wrong_job_is_refused_before_the_first_one_starts() -> None:
    launcher = FakeLauncher()
    with pytest.raises(ConfigError, match=r"job 1-admission\.alpha=7"):
        multirun(launcher).run(["admission.alpha=1,7", "budget=quick"], FOLDER, terminal=None)
    assert not launcher.launched and not FOLDER.exists()


def test_a_multirun_without_a_budget_is_refused_where_nobody_can_be_asked() -> None:
    with pytest.raises(ConfigError, match="budget"):
        prepare(["seed=1,2"], FOLDER, terminal=None)


def test_a_multirun_without_a_budget_asks_once() -> None:
    asked: list[str] = []

    def terminal(question: str) -> str:
        asked.append(question)
        return "30m"

    prepared = prepare(["seed=1,2"], FOLDER, terminal=terminal)
    assert len(asked) == 1
    assert [plan.budget.hours for _, plan in prepared] == [0.5, 0.5]


def test_a_run_directory_of_ones_own_is_refused() -> None:
    with pytest.raises(ConfigError, match="each job has its own"):
        prepare([*WORDS, "run=here"], FOLDER, terminal=None)


def test_an_interrupted_job_ends_the_multirun() -> None:
    launcher = FakeLauncher(faults={1: 130})
    with pytest.raises(KeyboardInterrupt):
        multirun(launcher).run(WORDS, FOLDER, terminal=None)
    assert len(launcher.launched) == 1


def test_a_job_directory_that_holds_something_else_fails_that_job_alone() -> None:
    launcher = FakeLauncher()

    def progress_of(path: Path) -> RunProgress:
        if path.name == "0-seed=1":
            raise RunError(f"run {path}", "a run directory", "no run.json in it")
        return RunProgress.ABSENT

    runner = Multirun(launcher=launcher, progress_of=progress_of)
    assert runner.run(WORDS, FOLDER, terminal=None) == 1
    assert [plan.seed for plan in launcher.launched] == [2, 3]
