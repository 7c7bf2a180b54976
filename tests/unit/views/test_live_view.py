from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console, ConsoleDimensions

from milo.core.budget import Budget, Spend
from milo.core.events import (
    EVENT_TYPES,
    Event,
    MoveVoided,
    ProposalSentBack,
    RoundEnded,
    RunResumed,
    Verdict,
)
from milo.core.moves import Graft
from milo.views.download import progress_bar
from milo.views.lines import is_notable, sentence
from milo.views.live import LiveView, choose_view
from milo.views.plain import PlainView
from milo.views.text import clock
from milo.views.view import Doing, Pace, Progress, Work, time_left

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
        "i1.2 → i1.3: scoring",
        "31/72",
        "i2.0+i1.1 → i2.2",
        "single_call",
        "60.0",
        "i3.2 admitted +0.0123",
        "orchestrator on i4: whole-population plateau → curriculum: search set 1 of 6 tasks",
    ):
        assert words in picture


def test_a_narrow_terminal_tells_on_a_second_line_what_it_has_no_column_for(
    make_story: Any,
) -> None:
    for width in (40, 80, 120):
        picture = _picture(_live(make_story("moves"), width), width)
        for words in (
            "single_call",
            "0/3",
            "i3.2 admitted +0.0123",
            "31/72",
            "60.0",
            "i1.2 → i1.3",
        ):
            assert words in picture, f"{words} at {width} columns"


def test_time_left_of_each_islands_work_is_told_from_its_own_pace(make_story: Any) -> None:
    view = _live(make_story("moves"))
    assert " min" not in _row_of(_picture(view, 140), "i1"), "nothing is known at first"
    done = {"i1": replace(SNAPSHOT.islands["i1"], done=51)}
    view.progress(replace(SNAPSHOT, islands=done, seconds=SNAPSHOT.seconds + 120))
    assert "51/72 2 min" in " ".join(_row_of(_picture(view, 140), "i1").split())


def _row_of(picture: str, island: str) -> str:
    return next(line for line in picture.splitlines() if line.startswith(f"{island} "))


def test_a_pace_is_that_of_the_piece_of_work_at_hand() -> None:
    pace = Pace()
    work = Work(doing=Doing.SCORING, candidate="c", done=10, wanted=40)
    assert pace.left("i1", work, 100.0) is None
    assert pace.left("i1", work, 130.0) is None, "nothing was done since"
    assert pace.left("i1", replace(work, done=20), 130.0) == pytest.approx(60.0)
    assert pace.left("i1", replace(work, done=45), 130.0) == 0.0
    assert pace.left("i1", replace(work, candidate="d", done=5), 140.0) is None
    assert pace.left("i1", replace(work, candidate="d", done=6), math.nan) is None


def test_an_unknown_price_is_said_and_never_shown_as_zero() -> None:
    view = LiveView(Console(file=io.StringIO(), width=100), patience=3)
    view.progress(Progress(budget=Budget(attempts=9), is_priced=False))
    assert "dollars unknown" in _picture(view, 100)
    spent = Spend(attempts=3, tokens=10, dollars=0.5)
    view.progress(Progress(budget=Budget(dollars=2.0), spent=spent, is_priced=False))
    assert "unknown (at least $0.50)/$2.00" in _picture(view, 100)
    view.progress(Progress(budget=Budget(attempts=9)))
    assert "dollars" not in _picture(view, 100), "a free model without a limit needs no figure"


@pytest.mark.parametrize("odd", [math.nan, math.inf, -1.0])
def test_figures_that_are_no_numbers_never_end_the_view(make_story: Any, odd: float) -> None:
    story = make_story("moves")
    story.add(RoundEnded(island="i1", round=3, stall=0, best_validation=odd))
    view = _live(story)
    spent = Spend(attempts=1, tokens=10, dollars=odd)
    for seconds in (odd, 5.0):
        view.progress(replace(SNAPSHOT, seconds=seconds, spent=spent))
        for width in (1, 2, 3, 7, 12, 40, 80, 120):
            assert _picture(view, width)


def test_a_terminal_may_be_resized_to_anything(make_story: Any) -> None:
    out = io.StringIO()
    console = Console(file=out, width=120, height=30, force_terminal=True)
    view = LiveView(console, patience=3)
    view.start("milo demo", make_story("moves").records)
    for width, height in ((120, 30), (40, 10), (1, 1), (5, 3), (200, 60), (80, 24)):
        console.size = ConsoleDimensions(width, height)
        view.progress(SNAPSHOT)
    view.stop()
    drawn = out.getvalue()
    assert "scoring" in drawn
    assert drawn.count("\x1b[2J") == 5, "a window of another width begins anew"
    assert "i1.2 → i1.3" in drawn.rpartition("\x1b[2J")[2]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200])
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


def test_what_the_run_waits_out_is_drawn_while_it_does(make_story: Any) -> None:
    view = _live(make_story("moves"))
    view.progress(Progress(budget=Budget(attempts=900), troubles=("the disk: it is full",)))
    assert "waiting: the disk: it is full" in _picture(view, 100)
    view.progress(Progress(budget=Budget(attempts=900)))
    assert "waiting: the disk" not in _picture(view, 100)


def test_a_view_without_any_record_draws_its_header() -> None:
    view = LiveView(Console(file=io.StringIO(), width=80), patience=3)
    assert "time left unknown  starting" in _picture(view, 80)
    view.progress(Progress(budget=Budget(attempts=400)))
    assert "0/400" in _picture(view, 80), "the budget is known before a host is"


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


def test_the_plain_view_counts_no_time_between_a_stop_and_its_resume(make_story: Any) -> None:
    """Else its lines and the budget's seconds in the same log would tell two clocks."""
    story, out = make_story("seeds"), io.StringIO()
    past = list(story.records)
    story.add(RunResumed(overrides=()))
    late = replace(story.records[-1], time=past[-1].time + 3600)
    view = PlainView(out)
    view.start("milo demo", past)
    view.update([late])
    wanted = clock(past[-1].time - past[0].time)
    assert out.getvalue().splitlines()[-1].startswith(f"[{wanted}] run resumed")


def test_a_log_that_takes_nothing_more_ends_no_search(make_story: Any) -> None:
    """`milo run | tee log` goes on for its three days when somebody kills the tee."""

    class Gone(io.StringIO):
        def write(self, words: str) -> int:
            raise BrokenPipeError

    view = PlainView(Gone())
    view.start("milo demo")
    view.update(make_story("finished").records)
    view.stop()


def test_the_plain_view_says_now_and_then_that_it_lives() -> None:
    out = io.StringIO()
    view = PlainView(out, every_s=30.0)
    for seconds in (1, 29, 31, 45, 62):
        view.progress(Progress(budget=Budget(), seconds=float(seconds), slots_total=4))
    assert len(out.getvalue().splitlines()) == 2


def test_every_kind_of_event_has_a_sentence(make_story: Any) -> None:
    graft = Graft(island="i1", donor="i2", donor_candidate="i2.0")
    rare: list[Event] = [
        RunResumed(),
        ProposalSentBack(island="i1", candidate="i1.3", round=3, reason="no change", full="none"),
        MoveVoided(island="i1", round=3, move=graft, reason="i2 was closed"),
    ]
    records = make_story("finished").records
    events = [*(record.event for record in records), *rare]
    assert {event.kind for event in events} == set(EVENT_TYPES)
    sentences = [sentence(event) for event in events]
    assert all(sentences)
    told = next(s for s in sentences if s.startswith("orchestrator on i3"))
    assert "dry mutator → reassign: island i3 gets the mutator single_call; speciate" in told
    assert told.endswith("(refused reassign: not in the pool): words about i3")
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
