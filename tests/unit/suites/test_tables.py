"""The held-out family: apart from the suite, solvable, exact, and fair to right answers."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from milo.core.plan import SuitePlan
from milo.core.task import Task
from milo.suites import deskwork
from milo.suites.deskwork import FAMILIES, HELD_OUT, generate, tables
from milo.suites.deskwork.direct import judge_folder, run_task
from milo.suites.deskwork.family import verifier_text
from milo.suites.deskwork.tables_parts import Output
from milo.suites.folder import load_folder
from milo.suites.suite import load_suite

TASKS = generate(families=(tables,))
ONE_OF_EACH = [task for task in TASKS.values() if int(task.id[-3:]) < len(tables.KINDS)]
ROWS = [["Mara", 12], ["Otis", 5]]


def checker() -> Any:
    """`check_table.py` as a module."""
    module = ModuleType("check_table")
    exec(verifier_text("check_table.py"), module.__dict__)
    return module


def goals_of(task: Task) -> list[dict[str, Any]]:
    return json.loads(task.tests.text("expected.json"))["goals"]  # type: ignore[no-any-return]


def verdict(folder: Path, *goals: Any) -> tuple[float, str]:
    reward, report = checker().judge({"goals": list(goals)}, folder)
    return reward, report


def test_the_family_is_not_in_the_suite_unless_it_is_asked_for_by_name() -> None:
    assert tables in HELD_OUT
    assert tables not in FAMILIES
    assert not any(task.family == "tables" for task in generate(count=30).values())
    plan = SuitePlan(families=("tables",), search=1, validation=1, test=98)
    suite = load_suite(plan)
    assert {task.family for task in suite.tasks.values()} == {"tables"}
    assert len(suite.splits.test) == 98


def test_every_kind_comes_equally_often_and_no_task_twice() -> None:
    assert len(TASKS) == deskwork.COUNT
    assert len(set(tables.KINDS)) == len(tables.KINDS) == 25
    assert len({(t.instruction, t.workspace.digest) for t in TASKS.values()}) == len(TASKS)
    same_kind = Counter(int(task_id[-3:]) % len(tables.KINDS) for task_id in TASKS)
    assert set(same_kind.values()) == {4}


def test_tasks_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "from milo.suites.deskwork import generate, tables\n"
        "for t in generate(families=(tables,)).values(): print(t.digest, t.solution.digest)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "4242")
    }
    assert len(found) == 1


@pytest.mark.parametrize("task", ONE_OF_EACH, ids=lambda task: task.id)
def test_the_reference_scores_one_and_doing_nothing_zero(task: Task, tmp_path: Path) -> None:
    task.workspace.write_to(tmp_path / "work")
    assert verdict(tmp_path / "work", *goals_of(task))[0] == 0.0
    task.solution.write_to(tmp_path)
    subprocess.run([tmp_path / "solve.sh"], cwd=tmp_path / "work", check=True)
    reward, report = verdict(tmp_path / "work", *goals_of(task))
    assert (reward, len(report.splitlines())) == (1.0, 1), report


async def test_a_task_is_judged_through_its_own_scripts_as_any_other() -> None:
    task = TASKS["tables-000"]
    assert await run_task(task, task.solution) == 1.0
    found = await judge_folder(task, task.workspace)
    assert (found.reward, "orders.json is missing" in found.report) == (0.0, True)


def test_a_copy_of_an_input_earns_half_at_most(tmp_path: Path) -> None:
    for task in TASKS.values():
        path = goals_of(task)[0]["path"]
        for at, source in enumerate(task.workspace):
            folder = tmp_path / f"{task.id}-{at}"
            folder.mkdir()
            (folder / path).write_text(task.workspace.text(source))
            assert verdict(folder, *goals_of(task))[0] <= 0.5, task.id


def test_instructions_are_short_and_name_every_file() -> None:
    for task in TASKS.values():
        assert 20 <= len(task.instruction.split()) <= 60, task.id
        assert 1 <= task.instruction.count(". ") + 1 <= 4, task.id
        for path in (*task.workspace, goals_of(task)[0]["path"]):
            assert f"`{path}`" in task.instruction, task.id


def test_files_are_small_and_do_not_hold_the_answer() -> None:
    for task in TASKS.values():
        outputs = {goal["path"] for goal in goals_of(task)}
        assert len(outputs) == 1
        assert not outputs & set(task.workspace)
        assert not set(task.workspace) & {*task.tests, *task.solution}
        for path in task.workspace:
            assert 2 <= len(task.workspace.text(path).splitlines()) <= 9, task.id


def test_the_family_written_as_harbor_folders_loads_back_equal(tmp_path: Path) -> None:
    deskwork.write_harbor(tmp_path, families=HELD_OUT, count=6)
    assert load_folder(tmp_path) == generate(families=HELD_OUT, count=6)


@pytest.mark.parametrize(
    "text",
    [
        "name,age\nMara,12\nOtis,5\n",
        "name,age\r\nMara,12\r\nOtis,5\r\n\r\n",
        '\ufeff"name","age"\n"Mara","12"\n"Otis","5"',
        "name, age\nMara , 12.0\nOtis, 5.00\n",
    ],
)
def test_a_right_table_may_be_written_in_several_ways(text: str, tmp_path: Path) -> None:
    out = Output(path="t.csv")
    (tmp_path / "t.csv").write_bytes(text.encode())
    goals = (out.header(["name", "age"]), out.table(["name", "age"], ROWS))
    row = out.row(("name", "Otis"), ("age", 5))
    assert verdict(tmp_path, *goals, row) == (1.0, "3 of 3 checks passed\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "t.csv is empty"),
        (" , \n", "wrong column names"),
        ("Mara,12\nOtis,5\n", "wrong column names"),
        ("age,name\n12,Mara\n5,Otis\n", "in the wrong order"),
        ("name,age\nOtis,5\nMara,12\n", "column name is wrong in 2 rows"),
        ("name,age\nmara,12\nOtis,5\n", "column name is wrong in 1 rows"),
        ("name,age\nMara,1_2\nOtis,5\n", "column age is wrong in 1 rows"),
        ("name,age\nMara,12 kg\nOtis,nan\n", "column age is wrong in 2 rows"),
        ("name,age\nMara,12\n", "wrong number of rows (1)"),
        ("name,age\nMara,12\n\nOtis,5\n", "line 3 has 0 cells, the header 2"),
        ("name,age\nMara,12,1\nOtis,5\n", "line 2 has 3 cells, the header 2"),
        ("name;age\nMara;12\nOtis;5\n", "wrong column names"),
        ('name,age\n"Mara"x,12\nOtis,5\n', "cannot be read as a table"),
    ],
)
def test_a_wrong_table_earns_nothing_and_hears_why(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    reward, report = verdict(tmp_path, Output(path="t.csv").table(["name", "age"], ROWS))
    assert reward == 0.0
    assert words in report


def test_in_json_a_number_is_no_string_and_the_order_of_keys_is_free(tmp_path: Path) -> None:
    out = Output(path="t.json", sep="")
    goals = (out.column("name", ["Mara", "Otis"]), out.column("age", [12, 5]))
    whole = out.table(["name", "age"], ROWS)

    def of(value: object) -> float:
        (tmp_path / "t.json").write_text(json.dumps(value))
        return verdict(tmp_path, *goals, whole)[0]

    assert of([{"age": 12.0, "name": "Mara"}, {"age": 5, "name": "Otis"}]) == 1.0
    assert of([{"name": "Mara", "age": "12"}, {"name": "Otis", "age": "5"}]) == pytest.approx(1 / 3)
    assert of([{"name": "Mara", "age": 12}, {"name": "Otis", "age": True}]) == pytest.approx(1 / 3)
    assert of([{"name": "Mara", "age": 12}, {"name": "Otis"}]) == 0.0
    assert of([{"name": "Mara", "age": 10**400}, {"name": "Otis", "age": 5}]) < 0.5
    assert of({"name": ["Mara", "Otis"]}) == of([]) == of(["Mara"]) == of(None) == 0.0


def test_an_object_earns_the_share_of_right_entries(tmp_path: Path) -> None:
    goals = Output(path="t.json", sep="").entries({"Ashby": 7, "Velden": 9})

    def of(text: str) -> tuple[float, str]:
        (tmp_path / "t.json").write_text(text)
        return verdict(tmp_path, *goals)

    assert of('{"Velden": 9, "Ashby": 7}')[0] == 1.0
    assert of('{"Velden": 9, "Ashby": 8}')[0] == pytest.approx(2 / 3)
    assert of('{"Velden": 9, "Ashby": 7, "Calder": 1}')[0] == pytest.approx(2 / 3)
    assert of('{"Velden": "9"}')[0] == 0.0
    assert of("[7, 9]") == (0.0, "0 of 3 checks passed\nt.json is not a JSON object\n")
    assert "is not valid JSON: line 1" in of('{"Velden": ')[1]
    assert of("[" * 100_000)[0] == 0.0


def test_a_link_a_folder_or_another_encoding_is_refused(tmp_path: Path) -> None:
    goal = Output(path="t.csv").table(["name", "age"], ROWS)
    target, path = tmp_path / "right.csv", tmp_path / "t.csv"
    target.write_text("name,age\nMara,12\nOtis,5\n")
    path.symlink_to(target)
    assert verdict(tmp_path, goal)[1].endswith("t.csv is not a regular file\n")
    path.unlink()
    path.mkdir()
    assert verdict(tmp_path, goal)[1].endswith("t.csv is not a regular file\n")
    path.rmdir()
    path.write_bytes(b"name,age\n\xff,1\n")
    assert verdict(tmp_path, goal)[1].endswith("t.csv is not UTF-8 text\n")
    path.write_bytes(b"a" * 1_000_001)
    assert verdict(tmp_path, goal)[1].endswith("t.csv is too large\n")


def test_a_group_that_is_there_twice_is_not_a_total(tmp_path: Path) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([["city", "total"], ["Ashby", 7], ["Ashby", 7], ["Calder", 3]])
    (tmp_path / "t.csv").write_text(text.getvalue())
    out = Output(path="t.csv")
    reward, report = verdict(
        tmp_path,
        out.row(("city", "Ashby"), ("total", 7)),
        out.row(("city", "Calder"), ("total", 3)),
        out.row(("city", "Calder"), ("total", 4)),
    )
    assert reward == pytest.approx(1 / 3)
    assert "there is not one row for each value of city" in report
    assert "column total is wrong in a row" in report
    assert not any(character in report.split("\n", 1)[1] for character in "347")
