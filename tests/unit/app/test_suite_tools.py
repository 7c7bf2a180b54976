"""`milo suite`: the list of suites, and the check that a suite can be trusted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from milo.app.suite_tools import (
    Examined,
    describe,
    examine,
    isolate,
    left_out_words,
    list_suites,
    load_tasks,
    run_solution,
)
from milo.core.errors import MiloError, SandboxLost, TaskError
from milo.core.ports import Command, Exit
from milo.core.task import Step, Task
from milo.core.tree import FileTree
from milo.suites.folder import Scan
from milo.suites.quarantine import read
from milo.testing.fake_sandbox import FakeEnvironment, FakeSandbox, Play


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
    assert (await run_solution(sandbox, TASK, SOLUTION)).reward == 1.0
    (environment,) = sandbox.opened
    assert environment.commands[0].argv == ("bash", "/solution/solve.sh")
    assert not environment.mounts["/solution"]
    assert environment.closed == 1


async def test_a_no_op_runs_the_verifier_alone() -> None:
    sandbox = FakeSandbox(solvable)
    assert (await run_solution(sandbox, TASK, None)).reward == 0.0
    assert sandbox.opened[0].mounts.keys() == {"/tests"}


async def test_every_step_is_solved_by_its_own_solution() -> None:
    tests, own = FileTree.of_texts({"test.sh": ""}), FileTree.of_texts({"solve.sh": "own"})
    steps = tuple(Step(name=n, instruction=n, tests=tests, solution=own) for n in "ab")
    task = Task(id="t", instruction="all", steps=steps)
    sandbox = FakeSandbox(solvable)
    assert (await run_solution(sandbox, task, task.solution)).reward == 1.0
    ran = [c.argv[-1] for c in sandbox.opened[0].commands]
    assert ran == ["/solution/solve.sh", "/tests/test.sh"] * 2


def scan_of(*tasks: Task, **broken: TaskError) -> Scan:
    return Scan(tasks={task.id: task for task in tasks}, broken=broken)


async def examined(scan: Scan, play: Play, **options: bool) -> Examined:
    return await examine(scan, FakeSandbox(play), 2, **{"partial": True, **options})


async def test_a_task_whose_solution_fails_is_named() -> None:
    good = await examined(scan_of(TASK), solvable)
    assert describe(good) == "1 of 1 tasks can be trusted"
    bad = describe(await examined(scan_of(TASK), unsolvable))
    assert "bad     t: the reference solution must score 1, found 0" in bad and "0 of 1" in bad


async def test_a_bad_task_comes_with_what_its_solution_and_its_tests_said() -> None:
    def play(environment: FakeEnvironment, command: Command) -> Exit:
        if command.argv[0] == "bash":
            return Exit(code=127, seconds=0, stderr="solve.sh: sort: not \x1b[2Jfound")
        environment.log_files["verifier/reward.txt"] = "0"
        return Exit(code=0, seconds=0, stdout="\n".join(f"line {n}" for n in range(6)))

    lines = describe(await examined(scan_of(TASK), play)).splitlines()
    shown = [line.partition("| ")[2] for line in lines if "| " in line]
    assert shown[:6] == [f"line {n}" for n in range(6)]
    assert shown[6:] == ["solve.sh ended with code 127", "solve.sh: sort: not  [2Jfound"]


async def test_what_a_build_printed_is_shown_below_its_task_and_harmless() -> None:
    def play(environment: FakeEnvironment, command: Command) -> Exit:
        raise MiloError("it can't be built\nStep 1\n\x1b[2Jno space")

    lines = describe(await examined(scan_of(TASK), play)).splitlines()
    assert lines[0].endswith("it can't be built")
    assert lines[1:3] == ["        | Step 1", "        |  [2Jno space"]


async def test_a_verifier_that_gives_no_reward_is_named_with_its_reason() -> None:
    bad = describe(await examined(scan_of(TASK), lambda e, c: Exit(code=127, seconds=0)))
    assert "no reward file was written (the verifier ended with code 127)" in bad


async def test_a_task_that_this_sandbox_can_not_run_is_skipped_and_not_called_bad() -> None:
    needy = replace(TASK, id="needy", needs=frozenset({"image-build"}))
    found = await examined(scan_of(TASK, needy), solvable)
    assert (found.report.quarantined, found.refused[0].task) == ((), "needy")
    assert "image-build" in describe(found) and "1 of 2 tasks" in describe(found)


async def test_a_task_that_says_wrongly_how_a_model_judges_it_is_broken_and_held(
    tmp_path: Path,
) -> None:
    wrong, right = (
        replace(
            TASK, id=kind, tests=FileTree.of_texts({"judge.json": f'{{"kind": "{kind}", {more}}}'})
        )
        for kind, more in (
            ("nonsense", '"files": []'),
            ("equivalent", '"file": "a", "question": "b", "expected": "c"'),
        )
    )
    scan = scan_of(TASK, wrong, right)
    found = await examined(scan, solvable)
    assert [one.task for one in found.broken] == ["nonsense"]
    assert [one.task for one in found.refused] == ["equivalent"]
    isolate(tmp_path, scan, found)
    assert read(tmp_path)["nonsense"].digest == wrong.digest


async def test_no_task_is_blamed_for_an_engine_that_dies() -> None:
    """What breaks without it: whoever restarts an engine finds good tasks in quarantine."""

    def dying(times: int) -> Play:
        died: list[int] = []

        def play(environment: FakeEnvironment, command: Command) -> Exit:
            if len(died) < times:
                died.append(1)
                raise SandboxLost("the engine went away")
            return solvable(environment, command)

        return play

    assert describe(await examined(scan_of(TASK), dying(1))) == "1 of 1 tasks can be trusted"
    with pytest.raises(SandboxLost):
        await examined(scan_of(TASK), dying(9))


async def test_part_of_the_reward_for_nothing_is_noted_and_all_of_it_is_refused() -> None:
    def given(reward: str) -> Play:
        def play(environment: FakeEnvironment, command: Command) -> Exit:
            solved = any("/solution/solve.sh" in earlier.argv for earlier in environment.commands)
            environment.log_files["verifier/reward.txt"] = "1" if solved else reward
            return Exit(code=0, seconds=0.1)

        return play

    part = await examined(scan_of(TASK), given("0.25"))
    assert (part.report.quarantined, part.report.generous[0].task) == ((), "t")
    assert (await examined(scan_of(TASK), given("0.25"), partial=False)).report.quarantined
    assert (await examined(scan_of(TASK), given("1"))).report.quarantined


async def test_what_fails_is_put_into_quarantine_and_comes_out_when_it_passes(
    tmp_path: Path,
) -> None:
    other = replace(TASK, id="u")
    scan = scan_of(TASK, other, broken=TaskError("task.toml key 'x'", "a number", "'y'"))
    bad = await examined(scan, unsolvable)
    assert "3 tasks are in quarantine" in isolate(tmp_path, scan, bad)
    held = read(tmp_path)
    assert sorted(held) == ["broken", "t", "u"]
    assert held["t"].digest == TASK.digest and "task.toml key 'x'" in held["broken"].reason
    needy = replace(other, needs=frozenset({"gpu"}))
    scan = scan_of(TASK, needy)
    isolate(tmp_path, scan, await examined(scan, solvable))
    assert sorted(read(tmp_path)) == ["u"]


def test_a_run_says_what_it_leaves_out() -> None:
    assert left_out_words({}) == ""
    assert "2 tasks in quarantine (a, b)" in left_out_words({"b": "bad", "a": "broken"})


def test_the_built_in_suite_is_listed() -> None:
    assert list_suites().startswith("deskwork ")


def test_what_is_neither_a_folder_nor_built_in_is_refused_with_the_nearest() -> None:
    with pytest.raises(TaskError, match="'deskwork'"):
        load_tasks("deskwrok")


def test_a_folder_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError):
        load_tasks(str(tmp_path))
