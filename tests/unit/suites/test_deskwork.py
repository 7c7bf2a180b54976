"""The built-in suite: deterministic, solvable, not solved by doing nothing, and not leaking."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from milo.core.task import Task
from milo.core.tree import FileTree
from milo.suites import deskwork
from milo.suites.check import check_tasks
from milo.suites.deskwork import FAMILIES, extract, generate, logs, repair, shell, sums
from milo.suites.deskwork.direct import judge, run_task
from milo.suites.deskwork.family import verifier_text
from milo.suites.deskwork.repair import CASES
from milo.suites.folder import load_folder

KINDS = {
    "shell": len(shell.KINDS),
    "extract": len(extract.KINDS),
    "sums": len(sums.PROBLEMS),
    "logs": len(logs.KINDS),
    "repair": 14,
}


def expected_of(task: Task) -> dict[str, Any]:
    return json.loads(task.tests.text("expected.json"))


def test_every_family_has_the_promised_number_of_tasks() -> None:
    tasks = generate()
    for family in FAMILIES:
        ids = [task.id for task in tasks.values() if task.family == family.NAME]
        assert len(ids) == deskwork.COUNT >= 40
        assert ids[17] == f"{family.NAME}-017"


def test_the_same_seed_gives_the_same_tasks_and_another_seed_gives_others() -> None:
    one, two, other = generate(0, count=12), generate(0, count=12), generate(1, count=12)
    assert {t.id: t.digest for t in one.values()} == {t.id: t.digest for t in two.values()}
    assert {t.id: t.tests.digest for t in one.values()} != {
        t.id: t.tests.digest for t in other.values()
    }


def test_generation_leaves_the_global_random_generator_alone() -> None:
    before = random.getstate()
    generate(count=3)
    assert random.getstate() == before


def test_tasks_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "import hashlib; from milo.suites.deskwork import generate\n"
        "print(hashlib.sha256(''.join(t.digest + t.solution.digest for t in "
        "generate(count=25).values()).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "4242")
    }
    assert len(digests) == 1


def test_no_two_tasks_are_the_same() -> None:
    tasks = generate()
    assert len({(t.instruction, t.workspace.digest) for t in tasks.values()}) == len(tasks)


def checker() -> Any:
    """`check.py` as a module of its own: starting a process per verdict would take too long."""
    module = ModuleType("check")
    exec(verifier_text("check.py"), module.__dict__)
    return module


async def run_quickly(task: Task, solution: FileTree | None) -> float | None:
    """As `direct.run_task`; only code repairs get the verifier's own processes."""
    if "goals" not in expected_of(task):
        return await run_task(task, solution)
    with TemporaryDirectory() as name:
        workspace = Path(name) / "workspace"
        task.workspace.write_to(workspace)
        if solution is not None:
            solution.write_to(Path(name))
            subprocess.run([f"{name}/solve.sh"], cwd=workspace, check=True)
        return float(checker().judge(expected_of(task), workspace)[0])


async def test_reference_solutions_score_one_and_doing_nothing_scores_zero() -> None:
    """Every kind once; `python -m milo.suites.deskwork check` runs all tasks in full."""
    chosen = [t for t in generate().values() if int(t.id[-3:]) < KINDS[t.family]]
    report = await check_tasks(chosen, run_quickly, parallel=4)
    assert report.checked == sum(KINDS.values())
    assert report.quarantined == ()
    assert report.unproved == ()


def test_every_bug_of_a_repair_case_shows_in_some_call() -> None:
    for case in CASES:
        for right, wrong in case.bugs:
            assert right in case.source, case.names
            assert right != wrong
    for task in generate(families=(repair,)).values():
        calls = expected_of(task)["calls"]
        assert any(call["goal"] for call in calls)
        assert task.workspace.text(next(iter(task.workspace))) not in task.solution.text("solve.sh")


def test_instructions_are_short_and_name_their_files_in_backticks() -> None:
    for task in generate().values():
        assert 12 <= len(task.instruction.split()) <= 90, task.id
        assert "`" in task.instruction, task.id


def test_workspaces_are_small() -> None:
    for task in generate().values():
        total = sum(len(task.workspace.text(path)) for path in task.workspace)
        assert total <= 1600, (task.id, total)


def test_workspaces_hold_neither_verifier_nor_expected_data() -> None:
    for task in generate().values():
        assert not set(task.workspace) & {*task.tests, *task.solution}, task.id
        assert "accepted" not in "".join(task.workspace.text(p) for p in task.workspace), task.id
        goals = [g for g in expected_of(task).get("goals", ()) if "key" in g]
        answers = {str(g["accepted"][0]) for g in goals if isinstance(g["accepted"][0], str)}
        keys = {g["key"] for g in goals}
        assert not any(f" {a} " in task.instruction for a in answers - keys), task.id


def test_the_suite_written_as_harbor_folders_loads_back_equal(tmp_path: Path) -> None:
    deskwork.write_harbor(tmp_path, seed=3, count=14)
    assert load_folder(tmp_path) == generate(3, count=14)


def test_a_task_of_a_family_depends_on_its_index_alone() -> None:
    few, many = generate(count=5), generate(count=9)
    assert all(few[task_id] == many[task_id] for task_id in few)


async def judged(task: Task, script: str) -> tuple[float | None, str]:
    solution = FileTree.of_texts({"solve.sh": f"#!/bin/bash\n{script}\n"})
    entry = solution["solve.sh"]
    found = await judge(task, FileTree({"solve.sh": type(entry)(entry.data, True)}))
    return found.reward, found.report


async def test_a_number_may_come_with_its_unit_but_not_with_others() -> None:
    task = generate(count=1, families=(sums,))["sums-000"]
    value = float(expected_of(task)["goals"][0]["value"])
    assert await judged(task, f"echo '{value:,.2f} dollars' > answer.txt") == (
        1.0,
        "1 of 1 checks passed\n",
    )
    reward, report = await judged(task, f"echo '{value:g} or {value + 1:g}' > answer.txt")
    assert (reward, report) == (
        0.0,
        "0 of 1 checks passed\nanswer.txt holds 2 numbers instead of one\n",
    )
    reward, report = await judged(task, f"echo {value + 1:g} > answer.txt")
    assert (reward, "wrong number" in report) == (0.0, True)
    assert f"{value:g}" not in report


async def test_a_json_answer_earns_the_share_of_right_keys() -> None:
    task = generate(count=2, families=(extract,))["extract-001"]
    goals = expected_of(task)["goals"]
    right = {goal["key"]: goal["accepted"][0] for goal in goals}
    shuffled = json.dumps(dict(reversed(right.items())) | {"guest": right["guest"].upper() + " "})
    assert (await judged(task, f"echo '{shuffled}' > booking.json"))[0] == 1.0
    reward, report = await judged(
        task, f"echo '{json.dumps(right | {'nights': str(right['nights'])})}' > booking.json"
    )
    assert reward == 0.75
    assert "key nights: expected a number, found a string" in report
    reward, report = await judged(task, "echo '{\"guest\": ' > booking.json")
    assert (reward, "booking.json is not valid JSON: line" in report) == (0.0, True)


async def test_files_that_should_stay_count_if_they_are_destroyed() -> None:
    task = generate(count=9, families=(shell,))["shell-008"]
    reward, report = await judged(task, "rm -r *")
    assert reward == 0.5
    assert "changed by mistake" in report


async def test_an_answer_that_is_a_symbolic_link_into_the_tests_is_refused() -> None:
    task = generate(count=3, families=(shell,))["shell-002"]
    reward, report = await judged(task, "ln -s ../tests/expected.json column.txt")
    assert (reward, report.endswith("column.txt is a symbolic link\n")) == (0.0, True)
