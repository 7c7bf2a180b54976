from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from milo.core.budget import Budget, Spend
from milo.core.events import EVENT_TYPES, RunResumed, Verdict
from milo.views.download import progress_bar
from milo.views.lines import is_notable, sentence
from milo.views.live import LiveView, choose_view
from milo.views.plain import PlainView
from milo.views.view import Doing, Progress, Work, time_left

SNAPSHOT = Progress(
    budget=Budget(hours=0.2, attempts=900, tokens=2_000_000, dollars=3.0, rounds=10),
    spent=Spend(attempts=450, tokens=400_000, dollars=0.5),
    seconds=192.0,
    slots_busy=3,
    slots_total=4,
    queued=33,
    islands={
        "i1": Work(doing=Doing.SCORING, candidate="i1.3", parent="i1.2", done=31, wanted=72),
        "i2": Work(doing=Doing.MUTATING, candidate="i2.2"),
    },
)


def _picture(view: LiveView, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, record=True)
    console.print(view.render(width))
    return console.export_text()


def _live(story: Any, width: int = 120) -> LiveView:
    view = LiveView(Console(file=io.StringIO(), width=width, force_terminal=True), patience=3)
    view.start("milo demo", story.records)
    view.progress(SNAPSHOT)
    view.stop()
    return view


def test_the_picture_shows_islands_work_budget_and_the_orchestrators_word(make_story: Any) -> None:
    picture = _picture(_live(make_story("moves")), 140)
    for words in (
        "milo demo",
        "3:12 elapsed",
        "slots 3/4 busy, 33 queued",
        "450/900",
        "400.0k/2.0M",
        "$0.50/$3.00",
        "3:12/12:00",
        "scoring i1.2 → i1.3",
        "31/72",
        "i2.0+i1.1 → i2.2",
        "single_call",
        "60.0",
        "i3.2 admitted +0.0123",
        "orchestrator on i4: whole-population plateau, words about i4",
    ):
        assert words in picture


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal_and_no_island_is_lost(
    make_story: Any, width: int
) -> None:
    picture = _picture(_live(make_story("moves"), width), width)
    assert max(len(line) for line in picture.splitlines()) <= width
    for island in ("i1", "i2", "i3", "i4"):
        assert any(line.startswith(f"{island} ") for line in picture.splitlines())


def test_notable_events_stay_in_the_scrollback(make_story: Any) -> None:
    out = io.StringIO()
    view = LiveView(Console(file=out, width=100, force_terminal=True), patience=3)
    view.start("milo demo")
    view.update(make_story("finished").records)
    view.message("a word of warning")
    view.stop()
    view.stop()
    shown = out.getvalue()
    assert "i1.1 admitted, gain 0.0123 with support 0.99" in shown
    assert "a word of warning" in shown
    assert "winner frozen: i2.2 of i2" in shown


def test_the_runs_own_work_has_a_bar(make_story: Any) -> None:
    view = _live(make_story("finished"))
    testing = Work(doing=Doing.TESTING, candidate="i2.2", done=10, wanted=40)
    view.progress(Progress(budget=Budget(attempts=900), whole=testing))
    assert "testing i2.2" in _picture(view, 100)
    assert "10/40" in _picture(view, 100)


def test_a_view_without_any_record_draws_its_header() -> None:
    view = LiveView(Console(file=io.StringIO(), width=80), patience=3)
    assert "time left unknown" in _picture(view, 80)


def test_time_left_comes_from_the_tightest_limit() -> None:
    left = time_left(SNAPSHOT, rounds=2.0)
    assert left is not None
    assert left.limit == "attempts"
    assert left.seconds == pytest.approx(192.0)
    by_time = time_left(Progress(budget=Budget(hours=0.1), seconds=300.0), rounds=0.0)
    assert by_time is not None
    assert by_time.seconds == pytest.approx(60.0)
    assert time_left(Progress(budget=Budget(attempts=9), seconds=5.0), rounds=0.0) is None


def test_without_a_terminal_each_event_is_one_flushed_line(make_story: Any) -> None:
    class Stream(io.StringIO):
        flushes = 0

        def flush(self) -> None:
            self.flushes += 1

    story, out = make_story("finished"), Stream()
    view = choose_view(out, patience=3)
    assert isinstance(view, PlainView)
    view.start("milo demo")
    view.update(story.records)
    view.message("two\nlines")
    view.stop()
    lines = out.getvalue().splitlines()
    assert len(lines) == len(story.records) + 2
    assert out.flushes >= len(lines)
    assert lines[1].startswith("[0:00] run demo started: 10 search, 10 validation, 20 test tasks")
    assert lines[-1] == "two lines"
    assert not any("\x1b" in line for line in lines)


def test_a_resumed_run_does_not_repeat_its_past(make_story: Any) -> None:
    story, out = make_story("seeds"), io.StringIO()
    past = list(story.records)
    story.add(RunResumed(overrides=("budget.attempts=2000",)))
    view = PlainView(out)
    view.start("milo demo", past)
    view.update(story.records[len(past) :])
    lines = out.getvalue().splitlines()
    assert len(lines) == 3
    assert "run resumed with budget.attempts=2000" in lines[-1]
    assert lines[-1].startswith(f"[{1 if len(past) * 3 >= 60 else 0}:")


def test_the_plain_view_says_now_and_then_that_it_lives() -> None:
    out = io.StringIO()
    view = PlainView(out, every_s=30.0)
    for seconds in (1, 29, 31, 45, 62):
        view.progress(Progress(budget=Budget(), seconds=float(seconds), slots_total=4))
    assert len(out.getvalue().splitlines()) == 2


def test_every_kind_of_event_has_a_sentence(make_story: Any) -> None:
    records = make_story("finished").records
    kinds = {record.event.kind for record in records} | {RunResumed.kind}
    assert kinds == set(EVENT_TYPES)
    sentences = [sentence(record.event) for record in records]
    assert all(sentences)
    assert "orchestrator on i3: dry mutator, words about i3 → reassign: island i3 gets" in " ".join(
        sentences
    )
    assert 0 < sum(is_notable(record.event) for record in records) < len(records)


def test_a_download_is_drawn_on_a_terminal_and_said_elsewhere() -> None:
    for terminal in (True, False):
        out = io.StringIO()
        with progress_bar(Console(file=out, width=100, force_terminal=terminal)) as report:
            for done in range(0, 101):
                report(done * 1_000_000, 100_000_000, "weights")
        assert "weights" in out.getvalue()
        if not terminal:
            assert len(out.getvalue().splitlines()) == 5


def test_a_download_of_unknown_size_is_shown() -> None:
    for terminal in (True, False):
        out = io.StringIO()
        with progress_bar(Console(file=out, width=60, force_terminal=terminal)) as report:
            report(5_000_000, 0, "weights")
        assert "5" in out.getvalue()


def test_an_escape_sequence_in_a_models_words_never_reaches_the_terminal(make_story: Any) -> None:
    """A harness could otherwise rewrite what the user reads of it."""
    story = make_story("seeds")
    story.propose("i1.1", "i1.0", title="\x1b[2J\x1b]0;owned\x07 an [bold]edit[/bold]")
    story.judge("i1.1", Verdict.REJECTED, "\x1b[1A it won")
    out = io.StringIO()
    view = PlainView(out)
    view.start("milo")
    view.update(story.records)
    picture = _picture(_live(story), 120)
    for words in (out.getvalue(), picture):
        assert "\x1b" not in words
        assert "\x07" not in words
    assert "an [bold]edit[/bold]" in out.getvalue()


def test_a_terminal_that_cannot_redraw_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(choose_view(Terminal(), patience=3), LiveView)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(choose_view(Terminal(), patience=3), PlainView)
