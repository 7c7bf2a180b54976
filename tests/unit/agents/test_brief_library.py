"""Earlier candidates as files: what a proposer with an archive, or a teacher, is shown."""

from __future__ import annotations

from dataclasses import replace

from agents_scene import SEED_NAMES, brief, evidence, view

from milo.agents.agent_loop import Session, opening
from milo.agents.brief import as_files, prompt, task_of
from milo.agents.brief_library import INDEX, in_library, library_files

SOLVED = evidence("t1", "42", resolved=True)
FAILED = evidence("t1", "no idea")


def test_every_candidate_has_its_source_scores_and_attempts() -> None:
    files = library_files([view("bare", FAILED, candidate="i1.2"), view("tool_loop", SOLVED)])
    assert "library/i1.2/source/main.py" in files
    assert "i1.2: accuracy 0.000" in files["library/i1.2/scores.md"]
    assert "no idea" in files["library/i1.2/tasks/01.md"]
    assert files[INDEX].splitlines()[1].startswith("c0 | 1.000"), "the best stands first"


def test_what_does_not_fit_is_left_out_and_said() -> None:
    views = [view("bare", SOLVED, candidate="good"), view("tool_loop", FAILED, candidate="poor")]
    whole = library_files(views)
    room = sum(len(text) for name, text in whole.items() if name.startswith("library/good/"))
    files = library_files(views, limit=room)
    assert not any(name.startswith("library/poor/") for name in files)
    assert "poor | 0.000" in files[INDEX] and "left out" in files[INDEX]


def test_a_brief_without_a_library_has_no_such_files() -> None:
    assert library_files([]) == {}
    assert not any(map(in_library, as_files(brief(view("bare")))))


def test_the_library_stands_among_the_files_and_not_in_the_prompt() -> None:
    known = replace(brief(view("bare")), library=tuple(view(n, candidate=n) for n in SEED_NAMES))
    files = as_files(known)
    assert {f"library/{name}/scores.md" for name in SEED_NAMES} <= set(files)
    assert "library/" not in prompt(known)


def test_signals_stand_in_the_task_of_the_round() -> None:
    pointed = replace(brief(view("bare")), signals="Failure-derived: it fails t1.")
    assert "Failure-derived: it fails t1." in task_of(pointed)
    assert "Failure-derived" in prompt(pointed)


def test_the_agent_loop_is_told_of_the_index_and_not_of_every_file() -> None:
    known = replace(brief(view("bare")), library=(view("tool_loop", candidate="i1.3"),))
    parent = known.parents[0].harness
    session = Session(parent=parent, documents=as_files(known), tree=parent.tree)
    shown = opening(session)[1]["content"]
    assert "brief/library/index.md" in shown
    assert "library/i1.3/" not in shown
