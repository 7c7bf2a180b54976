from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from milo.core.attempt import AttemptKey, Outcome, Status, Usage
from milo.core.events import CandidateScored, Verdict
from milo.core.fitness import TaskScore
from milo.views.concluding import build_report
from milo.views.rendering import print_report, report_markdown
from milo.views.report import Place, Report, report_json

PLACE = Place(run="runs/demo", harness="runs/demo/winner", commands=("milo export runs/demo mine",))


@pytest.fixture
def report_of(make_story: Any, as_data: Any) -> Any:
    def build(name_or_story: Any, *notes: str) -> Report:
        known = isinstance(name_or_story, str)
        story = make_story(name_or_story) if known else name_or_story
        return build_report(as_data(story), PLACE, notes)

    return build


def _terminal(report: Report, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, record=True)
    print_report(report, console)
    return console.export_text()


def test_the_winner_is_compared_with_the_best_seed_of_the_split(report_of: Any) -> None:
    test = report_of("finished").test
    assert test.best_seed == "i2.0"
    assert [seed.candidate for seed in test.seeds] == ["i1.0", "i2.0"]
    assert test.difference.mean == pytest.approx(0.5)
    assert test.difference.low > 0
    assert test.is_established
    assert test.tokens_ratio == pytest.approx(1.25)
    assert test.winner.coverage.share == 1.0
    assert test.winner.solved_once == pytest.approx(0.75)


def test_the_headline_claims_no_more_than_the_interval(report_of: Any) -> None:
    assert "is better than the best seed i2.0 (+50.0 points" in report_of("finished").headline
    assert "is not shown to differ" in report_of("close").headline
    assert "is worse than" in report_of("worse").headline


def test_a_run_without_a_search_is_never_a_success(report_of: Any) -> None:
    report = report_of("unsearched")
    assert not report.searched
    assert report.headline.startswith("Nothing was searched")
    assert any("Nothing was searched" in warning for warning in report.warnings)
    for words in (_terminal(report), report_markdown(report)):
        assert "better" not in words
        assert "winner −" not in words


def test_a_seed_that_wins_is_no_find(report_of: Any) -> None:
    report = report_of("seed_wins")
    assert "found nothing better than the seed i2.0: 6 edits tried" in report.headline
    assert "seed i2.0" in _terminal(report)


def test_an_unscored_test_split_is_said(report_of: Any) -> None:
    report = report_of("untested")
    assert "which also chose it; the test split is not scored" in report.headline
    assert "The test split (20 tasks) is not scored for the winner." in report.warnings


def test_a_report_of_a_run_that_goes_on_says_so(report_of: Any) -> None:
    report = report_of("moves")
    assert report.headline.startswith("No winner yet")
    assert any("has not ended" in warning for warning in report.warnings)
    assert not any("for the winner" in warning for warning in report.warnings), "there is none"


def test_an_empty_journal_gives_an_empty_report(report_of: Any) -> None:
    report = report_of("empty")
    assert report.candidates == ()
    assert report_markdown(report)
    assert _terminal(report)


def test_the_path_of_edits_tells_the_graft_and_its_effect(report_of: Any) -> None:
    (step,) = report_of("finished").path
    assert step.parents == ("i2.0", "i1.1")
    assert step.after.accuracy - step.before.accuracy == pytest.approx(0.5)
    assert step.tasks == 10
    words = _terminal(report_of("finished"))
    assert "graft of i2.0 + i1.1 → i2.2: merge both" in words
    assert "hypothesis: what i2.2 should do" in words
    assert "accuracy 30.0 → 80.0 % (+50.0 points), tokens × 1.25" in words


def test_every_move_is_told_with_what_came_of_it(report_of: Any) -> None:
    outcomes = {
        move.kind: move.outcome
        for call in report_of("finished").consultations
        for move in call.moves
    }
    assert outcomes["graft"].startswith("the grafted child i2.2 was admitted with gain 0.0123")
    assert (
        "1 of 1 child admitted since; best validation improved: 10.0 % before"
        in (outcomes["reassign"])
    )
    assert outcomes["speciate"].startswith("founded with 1 member; no child since")
    assert outcomes["curriculum"] == "took effect on i4; no child since"
    assert "refused: reassign: island i2 gets the mutator x: not in the pool" in _terminal(
        report_of("finished")
    )


def test_a_move_that_never_took_effect_is_said(make_story: Any, report_of: Any) -> None:
    story = make_story("moves")
    story.records = [r for r in story.records if r.event.kind != "move_applied"]
    story.records = [r for r in story.records if getattr(r.event, "candidate", "") != "i2.2"]
    moves = [m for call in report_of(story).consultations for m in call.moves]
    assert moves
    assert all(m.outcome == "never took effect: the run ended first" for m in moves)


def test_a_rejected_graft_stays_as_negative_evidence(make_story: Any, report_of: Any) -> None:
    story = make_story("moves")
    records = story.records
    for i, record in enumerate(records):
        event = record.event
        if event.kind == "candidate_judged" and event.candidate == "i2.2":
            import dataclasses

            rejected = dataclasses.replace(event, verdict=Verdict.REJECTED, reason="no gain")
            records[i] = dataclasses.replace(record, event=rejected)
    (move,) = report_of(story).consultations[0].moves
    assert move.outcome == "the grafted child i2.2 was rejected: no gain"


def test_all_candidates_are_listed_with_verdict_and_reason(report_of: Any) -> None:
    lines = {line.candidate: line for line in report_of("finished").candidates}
    assert len(lines) == 9
    assert (lines["i3.1"].verdict, lines["i3.1"].reason) == (
        Verdict.INVALID,
        "its smoke test fails",
    )
    assert lines["i2.1"].reason in _terminal(report_of("finished"), 160)


def test_the_budget_stands_beside_what_was_spent(report_of: Any) -> None:
    report = report_of("finished")
    assert report.spending.budget.attempts == 900
    assert report.spending.spent.attempts == report.coverage.attempted
    words = _terminal(report)
    assert f"attempts {report.spending.spent.attempts} of 900" in words
    assert "hours 0.05" in words
    for role in ("target", "mutator", "orchestrator"):
        assert role in words


def test_the_reader_learns_where_the_harness_lies_and_how_to_export_it(report_of: Any) -> None:
    for words in (_terminal(report_of("finished")), report_markdown(report_of("finished"))):
        assert "runs/demo/winner" in words
        assert "milo export runs/demo mine" in words


def test_the_validated_front_marks_the_winner(report_of: Any) -> None:
    report = report_of("finished")
    assert [m.candidate for m in report.front] == ["i2.2", "i1.0"]
    assert "Validated Pareto front" in _terminal(report)


def test_notes_missing_attempts_flags_and_unknown_prices_are_warnings(
    make_story: Any, report_of: Any
) -> None:
    story = make_story("finished")

    def attempt(index: int, **changes: Any) -> Outcome:
        key = AttemptKey(harness="digest-i2.2", task="t00", task_digest="d", model="m", index=index)
        return Outcome(key=key, **changes)

    usage = Usage(dollars=None, estimated=True)
    story.made += [
        attempt(8, status=Status.MODEL_ERROR, reward=None, usage=usage),
        attempt(9, status=Status.COMPLETED, reward=0.0, flags=("touched the verifier",)),
    ]
    report = report_of(story, "no isolation: the plain sandbox")
    words = "\n".join(report.warnings)
    assert "no isolation: the plain sandbox" in words
    assert "1 of 422 attempts are missing" in words
    assert "1 model_error" in words
    assert "touched the verifier × 1" in words
    assert "price is unknown for: target" in words
    assert report.test.winner.coverage.valid == 41
    assert "41/42" in _terminal(report)


def test_a_harness_without_attempts_on_some_tasks_is_not_hidden(
    make_story: Any, report_of: Any
) -> None:
    story = make_story("untested")
    score = TaskScore(n=2, reward=1.0, resolved=2, tokens=1.0, latency_s=1.0)
    for candidate in ("i2.2", "i2.0"):
        story.add(
            CandidateScored(island="i2", candidate=candidate, split="test", scores={"t00": score})
        )
    report = report_of(story)
    assert any("test figures rest on 1 of 20 tasks" in w for w in report.warnings)
    assert any("One test task alone gives no interval" in w for w in report.warnings)
    assert "unknown" in report.headline
    assert "20 tasks" in report_markdown(report)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_line_of_the_report_is_wider_than_the_terminal(report_of: Any, width: int) -> None:
    words = _terminal(report_of("finished"), width)
    assert max(len(line) for line in words.splitlines()) <= width
    assert words.count("i3.2") >= 1


@pytest.mark.parametrize("width", [30, 40, 60])
def test_a_narrow_terminal_never_loses_the_names_of_what_was_measured(
    report_of: Any, width: int
) -> None:
    """Figures without the harness that they belong to say nothing."""
    lines = _terminal(report_of("finished"), width).splitlines()
    result = lines[lines.index(next(line for line in lines if line.startswith("Result on"))) :]
    assert next(line for line in result if "PR@k" in line).startswith("harness")
    assert any(line.startswith("winner i2.2") for line in result)


def test_markup_in_a_mutators_words_stays_words(report_of: Any) -> None:
    report = report_of("finished")
    assert "strip \\[fences\\] \\| pipes" in report_markdown(report)
    assert "strip [fences] | pipes" in _terminal(report, 200)
    rows = [line for line in report_markdown(report).splitlines() if line.startswith("| i1.1")]
    assert rows[0].replace("\\|", "").count("|") == 11


def test_the_patches_of_the_path_are_in_the_written_report(report_of: Any) -> None:
    assert "+new of i2.2" in report_markdown(report_of("finished"))


def test_the_json_has_no_nan_and_round_trips(make_story: Any, report_of: Any) -> None:
    for name in ("empty", "seeds", "moves", "untested", "finished", "unsearched"):
        data = json.loads(report_json(report_of(name)), parse_constant=pytest.fail)
        assert data["place"]["run"] == "runs/demo"
    assert data["searched"] is False


def test_a_plan_without_a_budget_binds_nothing(make_story: Any, report_of: Any) -> None:
    from dataclasses import replace

    story = make_story("seeds")
    first = story.records[0]
    story.records[0] = replace(first, event=replace(first.event, plan={}))
    assert not report_of(story).spending.budget.is_bounded


def test_a_long_run_keeps_the_terminal_readable_and_the_written_report_whole(
    make_story: Any, report_of: Any
) -> None:
    story = make_story("seeds")
    for number in range(1, 101):
        story.propose(f"i1.{number}", "i1.0", title=f"edit {number}")
    report = report_of(story)
    assert "(23 earlier rows are in the written report)" in _terminal(report)
    assert "| i1.1 |" in report_markdown(report)
    assert "| i1.100 |" in report_markdown(report)


def test_a_consultation_without_a_move_and_an_island_never_founded_are_said(
    make_story: Any, report_of: Any
) -> None:
    story = make_story("moves")
    story.records = [
        r
        for r in story.records
        if getattr(r.event, "island", "") != "i4" and getattr(r.event, "split", "") != "validation"
    ]
    story.consult("i1", 4, "healthy")
    report = report_of(story)
    outcomes = {m.kind: m.outcome for call in report.consultations for m in call.moves}
    assert outcomes["speciate"] == "island i4 was never founded"
    assert outcomes["reassign"].endswith("no later child was validated")
    assert "→ no move" in _terminal(report)
