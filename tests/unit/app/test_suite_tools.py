"""`milo suite`: the list of suites, and the check that a suite can be trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from milo.app.suite_tools import describe, examine, list_suites, load_tasks, run_solution
from milo.core.errors import TaskError
from milo.core.ports import Command, Exit
from milo.core.task import Task
from milo.core.tree import FileTree
from milo.testing.fake_sandbox import FakeEnvironment, FakeSandbox


def solvable(environment: FakeEnvironment, command: Command) -> Exit:
    """The verifier gives 1 after the reference solution has run, and 0 before."""
    if command.argv[0].endswith("test.sh"):
        solved = any("/solution/solve.sh" in earlier.argv for earlier in environment.commands)
        environment.log_files["verifier/reward.txt"] = "1" if solved else "0"
    return Exit(code=0, seconds=0.1)


def unsolvable(environment: FakeEnvironment, command: Command) -> Exit:
    """The verifier gives 0 whatever happened."""
    environment.log_files["verifier/reward.txt"] = "0"
    return Exit(code=0, seconds=0.1)


SOLUTION = FileTree.of_texts({"solve.sh": "true"})
TASK = Task(
    id="t", instruction="do it", tests=FileTree.of_texts({"test.sh": ""}), solution=SOLUTION
)


async def test_a_solution_runs_before_the_verifier_and_leaves_nothing_open() -> None:
    sandbox = FakeSandbox(solvable)
    assert await run_solution(sandbox, TASK, SOLUTION) == 1.0
    (environment,) = sandbox.opened
    assert list(environment.mounts) == ["/solution", "/tests"]
    assert environment.commands[0].argv == ("bash", "/solution/solve.sh")
    assert environment.closed == 1


async def test_a_no_op_runs_the_verifier_alone() -> None:
    sandbox = FakeSandbox(solvable)
    assert await run_solution(sandbox, TASK, None) == 0.0
    assert sandbox.opened[0].mounts.keys() == {"/tests"}


async def test_a_task_whose_solution_fails_is_named() -> None:
    good = await examine({"t": TASK}, FakeSandbox(solvable), 2)
    assert describe(good) == "1 of 1 tasks can be trusted"
    bad = describe(await examine({"t": TASK}, FakeSandbox(unsolvable), 2))
    assert "bad   t: " in bad and "0 of 1" in bad


def test_the_built_in_suite_is_listed() -> None:
    assert list_suites().startswith("deskwork ")


def test_what_is_neither_a_folder_nor_built_in_is_refused_with_the_nearest() -> None:
    with pytest.raises(TaskError, match="'deskwork'"):
        load_tasks("deskwrok")


def test_a_folder_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError):
        load_tasks(str(tmp_path))
