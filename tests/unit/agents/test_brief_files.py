"""The brief as files: what stands where, what is cut, what the programs beside it find."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from agents_scene import PROSE, brief, evidence, view

from milo.agents.account import UNTITLED, account
from milo.agents.brief import AS_FILES, Bounds, as_files, task_of
from milo.agents.cli.workspace import lay_out, taken
from milo.core.events import Change, Verdict
from milo.core.evidence import Brief, Edge, ParentView
from milo.core.fitness import Fitness

SECRET = "the expected answer is 42"


def edge(parent: str, child: str, verdict: Verdict, on_path: bool = False) -> Edge:
    return Edge(
        parent=parent,
        child=child,
        round=int(child[1:]),
        change=Change(
            title=f"edit of {child}",
            diagnosis=f"why {child}",
            hypothesis=f"if {child}",
            evidence=("t1",),
        ),
        verdict=verdict,
        reason=f"judged {child}",
        before=Fitness(0.2, 100.0, 1.0),
        after=Fitness(0.4, 90.0, 1.0),
        flipped_up=("t1",),
        patch="--- a/main.py\n+++ b/main.py\n+x\n" if on_path else "",
        on_path=on_path,
    )


def both() -> ParentView:
    """A parent with a failing and a passing attempt of one task, and a secret in its traces."""
    failing = evidence("t1", PROSE, stderr="bash: error: x")
    passing = evidence("t1", "ls", resolved=True, changed={"out.txt": "6"})
    hidden = replace(failing, trace=replace(failing.trace, verifier_output=SECRET))
    return view("bare", hidden, passing, evidence("t2", PROSE))


def full() -> Brief:
    snapshot = (
        edge("c0", "c1", Verdict.ADMITTED, True),
        edge("c1", "c2", Verdict.REJECTED),
        edge("c0", "c3", Verdict.INVALID),
    )
    return replace(brief(both(), snapshot=snapshot), request="try tools", niche="sums")


def test_the_files_are_always_the_same_ones() -> None:
    assert list(as_files(full())) == [
        "task.md",
        "constraints.md",
        "parent-source.md",
        "parent-scores.md",
        "parent-patterns.md",
        "parent-tasks/01.md",
        "parent-tasks/02.md",
        "lineage.md",
        "data/attempts.jsonl",
        "data/edges.jsonl",
        "data/candidates.jsonl",
    ]


def test_a_failing_and_a_passing_attempt_of_a_task_stand_side_by_side() -> None:
    files = as_files(full())
    text = next(text for name, text in files.items() if text.startswith("# t1"))
    assert text.index("## Failing attempt") < text.index("## Passing attempt")
    assert "bash: error: x" in text and "out.txt:\n| 6" in text
    assert text.count("completed") >= 2


def test_the_lineage_is_a_tree_with_every_edits_diagnosis_and_effect() -> None:
    text = as_files(full())["lineage.md"]
    assert "  * c1 admitted: edit of c1 [accuracy 0.200 -> 0.400" in text
    assert "    - c2 rejected: edit of c2" in text
    for words in ("why c2", "if c2", "judged c3", "Now solved: t1", "+x"):
        assert words in text


def test_nothing_of_the_verifiers_own_output_is_shown() -> None:
    assert SECRET not in "\n".join(as_files(full()).values())
    laid = lay_out(full())
    assert all(SECRET.encode() not in file.data for file in laid.values())


def test_a_long_run_stays_within_the_bounds_and_keeps_the_request() -> None:
    many = [evidence(f"t{n}", "r" * 30_000, stderr="e" * 30_000) for n in range(96)]
    snapshot = tuple(edge("c0", f"c{n}", Verdict.REJECTED, n < 40) for n in range(1, 400))
    given = replace(brief(view("bare", *many), snapshot=snapshot), request="graft it")
    files = as_files(given)
    data = sum(len(text) for name, text in files.items() if name.startswith("data/"))
    readable = sum(map(len, files.values())) - data
    assert readable <= AS_FILES.readable and data <= AS_FILES.data
    assert "graft it" in files["task.md"]
    assert len(files["lineage.md"]) <= AS_FILES.lineage + 100
    small = as_files(given, Bounds(tasks=3, data=0))
    assert sum(name.startswith("parent-tasks/") for name in small) == 3


def test_a_graft_says_what_each_parent_solves_alone() -> None:
    one = view("bare", evidence("t1", "ls", resolved=True), evidence("t2", PROSE))
    two = view("plan_act", evidence("t1", PROSE), evidence("t2", "ls", resolved=True))
    given = brief(one, replace(two, candidate="c9"))
    files = as_files(given)
    assert "Solved by c0 alone (1): t1" in files["complement.md"]
    assert "Solved by c9 alone (1): t2" in files["complement.md"]
    assert "differ from each of them" in files["task.md"]
    laid = lay_out(given)
    assert laid.under("parent2") == two.harness.tree
    assert laid.under("harness") == one.harness.tree


def test_a_speciated_island_is_told_its_niche() -> None:
    assert "founded to serve a niche: sums" in task_of(full())


def test_what_is_left_in_the_harness_is_the_child() -> None:
    given = full()
    before = lay_out(given)
    after = before.with_texts(
        {
            "harness/main.py": "X = 1\n",
            "harness/CHANGE.md": "# a title\nDiagnosis: d\nEvidence: t1, t9",
            "notes.txt": "n",
        }
    )
    left = taken(before, after, given)
    assert left.tree.text("main.py") == "X = 1\n" and "CHANGE.md" not in left.tree
    assert left.change == Change(title="a title", diagnosis="d", evidence=("t1",))
    assert left.elsewhere == ("notes.txt",)


@pytest.mark.parametrize(
    ("text", "title", "diagnosis"),
    [
        ("", UNTITLED, ""),
        ("# do it\n\nDiagnosis: a\nb\nHypothesis: c", "do it", "a b"),
        ("Title: do it\n\n## Diagnosis\n\na\n\n## Hypothesis\nc", "do it", "a"),
        ("do it\n- **Diagnosis**: a\n- **Hypothesis:** c", "do it", "a"),
    ],
)
def test_an_account_is_read_however_loosely_it_is_written(
    text: str, title: str, diagnosis: str
) -> None:
    found = account(text)
    assert (found.title, found.diagnosis) == (title, diagnosis)
    assert found.hypothesis == ("c" if text else "")


def tool(folder: Path, *argv: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(folder / "brief" / argv[0]), *argv[1:]],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.fixture
def laid(tmp_path: Path) -> Path:
    twin = replace(both(), candidate="c7")
    lay_out(replace(full(), library=(twin,))).write_to(tmp_path)
    return tmp_path


def test_evidence_is_sliced_searched_and_compared(laid: Path) -> None:
    code, out = tool(laid, "milo-evidence", "list", "--task", "t1", "--candidate", "c0")
    assert code == 0 and len(out.splitlines()) == 2
    code, out = tool(laid, "milo-evidence", "show", "--task", "t2", "--part", "last")
    assert "[reply, stop] Certainly!" in out
    code, out = tool(laid, "milo-evidence", "grep", "error: x", "--failing")
    assert "bash: error: x" in out
    code, out = tool(laid, "milo-evidence", "diff", "t1")
    assert "-bash: error: x" in out and "@@ changed out.txt" in out
    code, out = tool(laid, "milo-evidence", "diff", "t1", "c0:0", "c7")
    assert "+++ c7:0 t1" in out and "c0 -> c1 solved it" in out
    assert tool(laid, "milo-evidence", "list", "--status", "gone")[0] == 1


def test_what_was_tried_on_a_file_is_listed(laid: Path) -> None:
    code, out = tool(laid, "milo-evidence", "tried", "main.py", "--patch")
    assert code == 0 and "c0 -> c1 admitted: edit of c1" in out and "+x" in out
    code, out = tool(laid, "milo-evidence", "tried", "--verdict", "rejected")
    assert "c1 -> c2" in out and "c0 -> c1" not in out


def test_the_smoke_program_judges_the_harness_that_stands_there(laid: Path) -> None:
    assert tool(laid, "milo-smoke") == (0, "The smoke test passes.\n")
    (laid / "harness" / "main.py").write_text("(")
    code, out = tool(laid, "milo-smoke")
    assert code == 1 and "the smoke command ended with code 1" in out
    (laid / "harness" / "harness.toml").write_text("entry = ")
    assert tool(laid, "milo-smoke")[0] == 1


def test_data_files_hold_one_object_per_line() -> None:
    files = as_files(full())
    rows = [json.loads(line) for line in files["data/attempts.jsonl"].splitlines()]
    assert {row["task"] for row in rows} == {"t1", "t2"}
    assert [row["resolved"] for row in rows] == [False, False, True]
