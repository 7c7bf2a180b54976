"""The command line: exit codes, one-line errors, and what each command passes on."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from milo.app import cli
from milo.app.cli import FAILED, INTERRUPTED, OK, USER_ERROR, main
from milo.core.errors import HarnessError, ModelError
from milo.core.plan import RunPlan

pytestmark = pytest.mark.usefixtures("no_keys", "workdir")


@dataclass
class FakeLauncher:
    """Answers with a code or a fault."""

    answer: int | BaseException = 0
    calls: list[RunPlan] = field(default_factory=list)

    def launch(self, plan: RunPlan) -> int:
        self.calls.append(plan)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def resume(self, path: Path, *, allow: Sequence[str]) -> int:
        raise AssertionError("not asked for")


def test_run_passes_the_plan_to_the_launcher() -> None:
    launcher = FakeLauncher()
    assert main(["run", "budget=quick", "seed=3"], launcher=launcher) == OK
    (plan,) = launcher.calls
    assert plan.seed == 3 and plan.budget.is_bounded


def test_the_launchers_exit_code_is_milos() -> None:
    assert main(["run", "budget=quick"], launcher=FakeLauncher(7)) == 7


def test_a_user_error_is_one_line_and_exit_code_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "budgt=quick"], launcher=FakeLauncher()) == USER_ERROR
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1
    assert "'budget'" in err and "Traceback" not in err


def test_an_unset_budget_is_refused_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run"], launcher=FakeLauncher()) == USER_ERROR
    assert "budget=quick" in capsys.readouterr().err


@pytest.mark.parametrize(("answer", "started"), [("n", 0), ("", 1)])
def test_a_run_that_costs_money_is_asked_about_on_a_terminal(
    answer: str, started: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a free one is not: nobody is there to answer for a local model."""
    asked: list[str] = []
    monkeypatch.setattr(cli, "_terminal", lambda: lambda words: (asked.append(words), answer)[1])
    launcher = FakeLauncher()
    assert main(["run", "budget=quick"], launcher=launcher) == OK and not asked
    priced = ["run", "model=openai/gpt-4o", "budget.dollars=5"]
    code = main(priced, launcher=launcher)
    assert len(launcher.calls) - 1 == started and code == (OK if started else INTERRUPTED)
    assert "the budget ends it at $5" in asked[0]


def test_a_user_error_of_a_run_is_a_user_error_too(capsys: pytest.CaptureFixture[str]) -> None:
    fault = HarnessError("seed", "a file harness.toml", "none")
    assert main(["run", "budget=quick"], launcher=FakeLauncher(fault)) == USER_ERROR
    assert capsys.readouterr().err == "error: seed: expected a file harness.toml, found none\n"


def test_another_fault_of_the_provider_is_one_line_and_exit_code_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "budget=quick"], launcher=FakeLauncher(ModelError("down"))) == FAILED
    assert capsys.readouterr().err == "error: down\n"


def test_a_fault_of_ours_shows_where_it_was_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "budget=quick"], launcher=FakeLauncher(ZeroDivisionError())) == FAILED
    err = capsys.readouterr().err
    assert "Traceback" in err and "milo doctor" in err


def test_an_interrupt_is_exit_code_130() -> None:
    assert main(["run", "budget=quick"], launcher=FakeLauncher(KeyboardInterrupt())) == INTERRUPTED


def test_options_may_stand_between_the_words() -> None:
    launcher = FakeLauncher()
    words = ["run", "seed=1,2", "-m", "budget=quick", "--into", "here", "strategy=d"]
    assert main(words, launcher=launcher) == OK
    assert [plan.seed for plan in launcher.calls] == [1, 2]
    assert all(plan.strategy.name == "d" for plan in launcher.calls)
    assert Path("here/multirun.json").is_file()


@pytest.mark.parametrize(
    "argv",
    [
        ["run", "--fast"],
        [],
        ["status"],
        ["fly"],
        ["runs", "x"],
        ["report", "r", "--json", "--markdown"],
    ],
)
def test_a_command_line_that_cannot_be_read_is_exit_code_two(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == USER_ERROR


@pytest.mark.parametrize(
    "argv", [["status", "nope"], ["report", "nope"], ["export", "nope", "d"], ["resume", "nope"]]
)
def test_a_run_that_is_not_there_is_a_user_error(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv, launcher=FakeLauncher()) == USER_ERROR
    assert "'nope'" in capsys.readouterr().err


def test_keys_lists_groups_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys"]) == OK
    out = capsys.readouterr().out
    assert "best_of_n" in out and "budget.hours" in out


@pytest.mark.parametrize(("kind", "name"), [("mutators", "codex"), ("peers", "openevolve")])
def test_programs_of_others_are_listed_with_where_they_are_installed(
    kind: str, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILO_AGENTS", "nowhere")
    assert main([kind, "list"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"{name} ") and "not installed" in line for line in lines)
    assert lines[-1].endswith("nowhere.")


def test_runs_says_so_where_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs"]) == OK
    assert "no runs here" in capsys.readouterr().out


def test_a_terminal_that_knows_no_arrow_gets_a_question_mark_and_ends_no_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search over night must not end at the first arrow because its log is in Latin-1."""
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="latin-1"))

    class Talkative(FakeLauncher):
        def launch(self, plan: RunPlan) -> int:
            print("i1.0 → i1.1: naïve")
            return OK

    assert main(["run", "budget=quick"], launcher=Talkative()) == OK
    sys.stdout.flush()
    assert out.getvalue().decode("latin-1") == "i1.0 ? i1.1: naïve\n"


def test_help_is_written_by_the_installed_entry_point() -> None:
    out = subprocess.run(
        [sys.executable, "-m", "milo.app.cli", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert all(word in out for word in ("run", "resume", "status", "report", "export", "doctor"))


def test_a_resume_with_words_says_how_changes_are_allowed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["resume", "here", "seed=4"], launcher=FakeLauncher())
    assert caught.value.code == USER_ERROR
    assert "milo resume here --allow-changes seed=4" in capsys.readouterr().err
