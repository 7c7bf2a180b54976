"""The optimizer's program and the reviser: what they read, and what they make of a reply."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from milo.suites.arena.harness import main as program
from milo.suites.arena.harness.reviser import main as reviser
from milo.suites.arena.harness.seeds import SCHEDULES, optimizer, seed_trees, text_of
from milo.suites.arena.optimizer.moves import MOVES
from milo.suites.arena.problems.catalogue import problems
from milo.suites.arena.problems.problem import verify

LIST = '[{"move": "hop", "size": 0.2}]'


def laid_out(folder: Path, schedule: str) -> Path:
    tree = optimizer(schedule)
    for path in tree:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(tree.text(path), encoding="utf-8")
    return folder


# --- the optimizer's program -------------------------------------------------------------------


def program_with(folder: Path, schedule: str) -> Any:
    """`program_beside` of a program that lies beside this schedule."""
    (folder / "main.py").write_text(text_of("harness", "main.py"), encoding="utf-8")
    (folder / "schedule.py").write_text(schedule, encoding="utf-8")
    return runpy.run_path(str(folder / "main.py"), run_name="loaded")["program_beside"]()


def test_a_schedule_may_bring_moves_of_its_own(tmp_path: Path) -> None:
    own = (
        "def leap(state, seconds: float, far: float = 1.0) -> None:\n    state.x = state.x * far\n"
    )
    found = program_with(tmp_path, f'{own}SCHEDULE = [{{"move": "leap", "far": 2.0}}]\n')
    assert set(found.moves) == {*MOVES, "leap"}
    program.smoke(program.Program(found.schedule, found.moves))


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_seeds_schedule_is_found_beside_its_program(tmp_path: Path, name: str) -> None:
    found = program_with(tmp_path, text_of("harness", "schedules", f"{name}.py"))
    assert {entry["move"] for entry in found.schedule} <= set(found.moves)


@pytest.mark.parametrize(
    "schedule, error",
    [
        ([{"move": "fly"}], ValueError),
        ([], ValueError),
        ([{"share": 1.0}], ValueError),
        ([{"move": "hop"}, {"move": "hop", "sise": 0.1}], TypeError),
    ],
)
def test_a_smoke_test_finds_what_is_wrong_in_any_entry(
    schedule: list[dict[str, Any]], error: type[Exception]
) -> None:
    with pytest.raises(error):
        program.smoke(program.Program(schedule, MOVES))


def test_a_construction_is_written_always_and_told_of_only_where_it_is_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    keeper = program.Keeper(problems()["first-autocorrelation-inequality"], 2.0)
    keeper.keep(0.5, 1.75, np.array([1.0, 2.0]))
    keeper.keep(0.6, 1.75 - 1e-15, np.array([1.0, 3.0]))
    assert capsys.readouterr().out == "0.50 1.75\n"
    assert json.loads(Path("construction.json").read_text()) == {"values": [1.0, 3.0]}


def test_a_search_says_what_it_keeps_for_ending_and_begins_at_what_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Brought to half its sum twice, this construction would leave the range."""
    monkeypatch.chdir(tmp_path)
    given = {"values": [0.616, 0.041, 0.422, 0.191, 0.27]}
    Path("construction.json").write_text(json.dumps(given))
    what = {"problem": "erdos-min-overlap", "seed": 0, "most": 10}
    Path("problem.json").write_text(json.dumps(what))
    left = program.seconds_left({"MILO_DEADLINE": "1010.0"}, now=1000.0)
    best = program.improve(program.Program([{"move": "home"}], MOVES), left)
    assert best == verify(problems()["erdos-min-overlap"], given).value
    assert "searching for 8.0 s; 2 s of the attempt are kept for ending" in capsys.readouterr().out


# --- the reviser -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply, file",
    [
        (f"Here:\n```python\nSCHEDULE = {LIST}\n```\nGood luck", f"SCHEDULE = {LIST}\n"),
        (f"```\n{LIST}\n```", f"SCHEDULE = {LIST}\n"),
        (f"I would try {LIST} now", f"SCHEDULE = {LIST}\n"),
        ("```python\nimport os\n```", ""),
        ("```python\nSCHEDULE = [\n```", ""),
        ("SCHEDULE = [open('x')]", ""),
        ("SCHEDULE = []", ""),
        ("SCHEDULE = [1, 2]", ""),
        ("", ""),
    ],
)
def test_a_schedule_is_found_in_a_reply_or_refused(reply: str, file: str) -> None:
    assert reviser.file_in(reply) == file


def test_a_whole_file_with_a_move_of_its_own_is_kept_whole() -> None:
    text = f"def leap(state, seconds: float) -> None:\n    pass\n\nSCHEDULE = {LIST}"
    assert reviser.file_in(f"```python\n{text}\n```") == text + "\n"


def test_the_model_is_shown_every_move_with_its_parameters(tmp_path: Path) -> None:
    shown = reviser.moves_of(laid_out(tmp_path, f"SCHEDULE = {LIST}\n"))
    assert {line.partition("(")[0] for line in shown.splitlines()} == set(MOVES)
    assert "size: float=" in shown


def test_a_run_that_failed_has_no_end() -> None:
    assert reviser.span("p starts at 0.5\n1.0 0.4\nends at 0.4\n") == ("0.5", "0.4")
    assert reviser.span("p starts at 0.5\nTraceback") == ("0.5", "")


class Scripted(reviser.Revision):
    """A revision whose optimizer improves only with the schedules that are named good."""

    good: tuple[str, ...] = ()

    def go(self, seconds: float) -> bool:
        helped = any(word in self.schedule.read_text() for word in self.good)
        self.log = f"p starts at 0.5\nends at {0.4 if helped else 0.5}"
        return helped


def scripted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, replies: list[str], good: tuple[str, ...]
) -> Scripted:
    monkeypatch.setattr(reviser, "ask", lambda *_: replies.pop(0) if replies else "")
    errors = {"fly": "expected moves among hop"}
    monkeypatch.setattr(
        reviser,
        "tested",
        lambda f: next((e for w, e in errors.items() if w in (f / "schedule.py").read_text()), ""),
    )
    revision = Scripted(laid_out(folder, 'SCHEDULE = [{"move": "anneal"}]\n'), "p", 1e18)
    revision.good = good
    return revision


def test_a_revision_stays_where_it_helped_and_goes_where_it_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = ['[{"move": "hop"}]', '[{"move": "refine"}]']
    revision = scripted(tmp_path, monkeypatch, replies, good=("hop",))
    revision.step(1.0)
    assert "hop" in revision.schedule.read_text()
    revision.step(1.0)
    assert "hop" in revision.schedule.read_text()
    kept, dropped = revision.tried
    assert "kept: 0.5 became 0.4" in kept
    assert "dropped" in dropped


def test_a_file_that_fails_its_test_is_shown_once_more_with_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    replies = ['[{"move": "fly"}]', '[{"move": "hop"}]']
    revision = scripted(tmp_path, monkeypatch, replies, good=("hop",))
    inner = reviser.ask
    monkeypatch.setattr(reviser, "ask", lambda p, d: (asked.append(p), inner(p, d))[1])
    assert "hop" in revision.propose()
    assert "expected moves among hop" in asked[1]
    assert "failed its test" not in asked[0]


def test_without_an_answer_the_optimizer_goes_on_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    revision = scripted(tmp_path, monkeypatch, [], good=())
    revision.step(1.0)
    assert revision.schedule.read_text() == 'SCHEDULE = [{"move": "anneal"}]\n'
    assert revision.tried == []


def test_the_reviser_may_edit_itself_but_not_the_seeds_packages() -> None:
    assert set(seed_trees(with_model=True)["reviser"]) == {"harness.toml", "main.py"}
