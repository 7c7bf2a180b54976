"""The generality check and the other checks that come before any attempt is paid."""

from __future__ import annotations

import time

import pytest

from milo.core.harness import Harness
from milo.core.task import Task
from milo.core.tree import File, FileTree
from milo.search.generality import GeneralityIndex, scan
from milo.search.preflight import check_child

INSTRUCTION = "Count the lines of every log file below the folder inbox and write the total."
MANIFEST = 'name = "h"\nentry = "python3 main.py"\neditable = ["*.py", "harness.toml"]\n'
PARENT = FileTree.of_texts({"harness.toml": MANIFEST, "main.py": "print('hello')\n", "x.txt": "x"})


def task(task_id: str = "log-count-001", **changes: object) -> Task:
    fields = {
        "instruction": INSTRUCTION,
        "tests": FileTree.of_texts(
            {"test.sh": "#!/bin/bash\nset -e\ntest $(cat total) = 4711 && echo ok > /logs/r\n"}
        ),
        "solution": FileTree.of_texts({"solve.sh": "echo token a1b2c3d4e5f6a7 > total\n"}),
    }
    return Task(id=task_id, **{**fields, **changes})  # type: ignore[arg-type]


def edited(text: str) -> FileTree:
    return PARENT.with_texts({"main.py": f"print('hello')\n{text}\n"})


def hits(text: str, tasks: list[Task] | None = None) -> list[str]:
    return [str(hit) for hit in scan(PARENT, edited(text), tasks or [task()])]


def test_an_honest_edit_has_no_hit():
    assert hits("for line in open('task'):\n    print(line.strip())") == []


def test_a_task_id_is_found_with_its_line():
    assert hits("if 'log-count-001' in task: pass") == [
        "main.py:2 holds the id 'log-count-001' of task log-count-001"
    ]
    assert hits("x = 'tasks/log-count-001/answer'") != []
    assert hits("x = 'log-count-0012'") == []


def test_an_id_that_is_a_plain_short_word_is_not_searched_for():
    assert hits("names.sort()", [task("sort")]) == []
    assert hits("polyglotted", [task("polyglotted")]) != []


def test_a_run_of_eight_instruction_words_is_found_whatever_the_case_or_line_breaks():
    shown = "# count THE lines of every\n\n# log-file below the folder"
    found = hits(shown)
    assert len(found) == 1
    assert found[0].startswith("main.py:2 holds the words 'count the lines of every log file")


def test_seven_words_are_no_run():
    assert hits("# count the lines of every log file") == []


def test_verifier_and_reference_text_is_found():
    assert hits("cmd = 'test $(cat total) = 4711 && echo ok > /logs/r'") != []
    assert "the value 'a1b2c3d4e5f6a7'" in hits("x = 'A1B2C3D4E5F6A7'")[0]


def test_a_value_that_the_agent_sees_or_that_two_tasks_share_is_no_answer():
    seen = task(workspace=FileTree.of_texts({"in": "a1b2c3d4e5f6a7"}))
    assert hits("x = 'a1b2c3d4e5f6a7'", [seen]) == []
    assert hits("x = 'a1b2c3d4e5f6a7'", [task("t-1"), task("t-2")]) == []


def test_lines_of_a_parent_are_not_new_even_when_moved():
    parent = PARENT.with_texts({"main.py": f"# {INSTRUCTION}\nprint(1)\n"})
    child = parent.with_texts({"main.py": "print(2)\n", "lib.py": f"# {INSTRUCTION}\n"})
    index = GeneralityIndex([task()])
    assert index.scan([parent], child) == ()
    assert index.scan([PARENT, parent], child) == ()
    assert len(index.scan([PARENT], child)) == 1
    assert len(scan(None, child, [task()])) == 1


def test_a_parents_line_breaks_a_run():
    parent = PARENT.with_texts({"main.py": "keep = 1\n"})
    child = PARENT.with_texts(
        {"main.py": "# count the lines of every\nkeep = 1\n# log file below the folder inbox\n"}
    )
    assert GeneralityIndex([task()]).scan([parent], child) == ()


def test_import_lines_and_shebangs_never_count():
    stock = "import json\nimport os\nimport sys\nimport re\nfrom pathlib import Path\n"
    tests = FileTree.of_texts({"check.py": f"#!/usr/bin/env python3\n{stock}"})
    assert hits(stock, [task(tests=tests)]) == []


def test_runs_common_to_most_tasks_of_a_large_suite_are_left_out():
    common = "write your final answer into the file answer txt please"
    few = [task(f"task-{i}", instruction=common) for i in range(10)]
    many = [*few, task("task-10", instruction=common)]
    assert hits(f"# {common}", few) != []
    assert hits(f"# {common}", many) == []


def test_files_that_are_no_text_are_refused_and_still_scanned():
    child = FileTree({**PARENT, "blob": File(b"\xff\xfe\x00 log-count-001")})
    assert [hit.matched for hit in scan(PARENT, child, [task()])] == [
        "data that nobody can read",
        "the id 'log-count-001'",
    ]
    assert scan(child, child.with_texts({"main.py": "print(2)\n"}), [task()]) == ()


def test_a_hundred_tasks_are_indexed_and_scanned_quickly():
    """Preflight must not slow down a run whose attempts take a second."""
    body = " ".join(f"w{i % 977}x{i % 31}" for i in range(1500))
    tasks = [task(f"task-{i}", instruction=f"t{i} {body}") for i in range(100)]
    start = time.perf_counter()
    index = GeneralityIndex(tasks)
    built = time.perf_counter()
    index.scan([PARENT], edited("\n".join(f"line {i} = call({i})" for i in range(2000))))
    assert built - start < 5.0
    assert time.perf_counter() - built < 1.0


# --- preflight ------------------------------------------------------------------------------------

INDEX = GeneralityIndex([task()])
H = Harness.from_tree(PARENT)


def test_a_valid_child_passes():
    assert check_child([H], edited("x = 1"), INDEX).reason == ""


def test_an_unchanged_child_is_refused():
    assert "nothing was changed" in check_child([H], PARENT, INDEX).reason


def test_an_earlier_candidate_is_refused():
    child = edited("x = 1")
    assert "an earlier candidate" in check_child([H], child, INDEX, {child.digest}).reason


@pytest.mark.parametrize(
    ("child", "reason"),
    [
        (PARENT.without("harness.toml"), "harness.toml"),
        (PARENT.with_texts({"harness.toml": "name = 1"}), "entry"),
        (PARENT.without("main.py"), "main.py"),
        (PARENT.with_texts({"x.txt": "y"}), "changed x.txt, but the manifest allows edits of *.py"),
        (edited("# log-count-001"), "task-specific logic: main.py:2"),
    ],
)
def test_a_faulty_child_is_refused_with_the_reason(child, reason):
    assert reason in check_child([H], child, INDEX).reason


def test_a_graft_may_take_over_a_donors_file_but_not_invent_one():
    donor = Harness.from_tree(PARENT.with_texts({"x.txt": "donor", "main.py": "print(2)\n"}))
    taken = edited("x = 1").with_texts({"x.txt": "donor"})
    assert check_child([H, donor], taken, INDEX).reason == ""
    assert "x.txt" in check_child([H, donor], taken.with_texts({"x.txt": "new"}), INDEX).reason


def test_many_hits_are_summarised():
    child = edited("\n".join(f"a{i} = 'log-count-001'" for i in range(5)))
    assert check_child([H], child, INDEX).reason.endswith("and 2 more")
