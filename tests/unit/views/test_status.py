from __future__ import annotations

import json
from typing import Any

import pytest

from milo.core.attempt import AttemptKey, Outcome, Status, Usage
from milo.core.budget import Budget
from milo.core.events import RunResumed
from milo.views.spending import tally
from milo.views.status import RunState, status_json, status_of, status_text
from milo.views.view import Progress


def _status(story: Any, **changes: Any) -> Any:
    given = {"run": "runs/demo", "alive": False, "now": 2000.0, **changes}
    return status_of(story.records, story.made, **given)


@pytest.mark.parametrize(
    ("name", "alive", "state"),
    [
        ("empty", False, RunState.NOT_STARTED),
        ("moves", True, RunState.RUNNING),
        ("moves", False, RunState.INTERRUPTED),
        ("finished", False, RunState.FINISHED),
        ("finished", True, RunState.FINISHED),
    ],
)
def test_the_state_follows_from_the_records_and_the_owner(
    make_story: Any, name: str, alive: bool, state: RunState
) -> None:
    assert _status(make_story(name), alive=alive).state is state


def test_an_interrupted_run_says_how_to_go_on(make_story: Any) -> None:
    words = status_text(_status(make_story("moves")))
    assert "interrupted: resume with `milo resume runs/demo`" in words


def test_a_run_that_was_killed_before_its_first_record_says_how_to_begin(make_story: Any) -> None:
    words = status_text(_status(make_story("empty")))
    assert "not started: resume with `milo resume runs/demo`" in words


def test_a_path_with_a_blank_is_quoted_where_it_is_to_be_typed(make_story: Any) -> None:
    assert _status(make_story("moves"), run="my runs/demo").resume == "milo resume 'my runs/demo'"


def test_each_limit_that_binds_stands_beside_what_is_used_of_it(make_story: Any) -> None:
    """One glance must tell how long a run will still go on."""
    status = _status(make_story("moves"))
    hours = round(status.active_s / 3600, 3)
    made = status.coverage.attempted
    assert f"budget: hours {hours} of 0.2; attempts {made} of 900\n" in status_text(status)
    story = make_story("moves")
    story.add(RunResumed(overrides=("budget.attempts=5000",)))
    assert f"attempts {made} of 5000" in status_text(_status(story))


def test_islands_show_rounds_verdicts_and_their_best(make_story: Any) -> None:
    islands = {i.island: i for i in _status(make_story("moves")).islands}
    assert (islands["i2"].tried, islands["i2"].admitted) == (2, 1)
    assert (islands["i3"].mutator, islands["i3"].round) == ("single_call", 2)
    assert islands["i2"].best == "i2.2"
    assert islands["i4"].best_fitness.accuracy == pytest.approx(1 / 6)


def test_spend_is_kept_apart_by_role(make_story: Any) -> None:
    status = _status(make_story("moves"))
    assert status.spend["target"].calls == status.coverage.attempted
    assert status.spend["mutator"].tokens == 70
    assert status.spend["orchestrator"].tokens == 150


def test_missing_attempts_lower_the_coverage_and_name_the_fault(make_story: Any) -> None:
    story = make_story("seeds")
    key = AttemptKey(harness="h", task="s00", task_digest="d", model="m", index=7)
    story.made.append(
        Outcome(key=key, status=Status.MODEL_ERROR, reward=None, usage=Usage(dollars=None))
    )
    status = _status(story)
    assert status.coverage.attempted - status.coverage.valid == 1
    assert "(missing: 1 model_error)" in status_text(status)
    assert "unknown" in status_text(status)


def test_times_are_told_from_the_records_and_the_pause_is_left_out(make_story: Any) -> None:
    story = make_story("moves")
    active = _status(story).active_s
    story.add(RunResumed(), after=5000.0)
    status = _status(story, now=10_000.0, alive=True)
    assert status.active_s == active
    assert status.resumes == 1
    assert status.last_admitted == "i3.2"
    assert status.since_progress_s > 5000
    assert "resumed 1 time" in status_text(status)


def test_queue_and_flight_are_shown_where_they_are_known(make_story: Any) -> None:
    story = make_story("moves")
    assert _status(story).queued is None
    live = Progress(budget=Budget(), queued=12, slots_busy=4)
    assert "queue: 12 queued, 4 in flight" in status_text(_status(story, progress=live))


def test_what_a_run_waits_out_is_said_while_it_does(make_story: Any) -> None:
    live = Progress(budget=Budget(), troubles=("the disk: it is full", "m/1: nobody answers"))
    status = _status(make_story("moves"), alive=True, progress=live)
    assert "waiting: the disk: it is full\nwaiting: m/1: nobody answers" in status_text(status)
    assert json.loads(status_json(status))["troubles"] == list(live.troubles)
    assert "waiting" not in status_text(_status(make_story("moves"), alive=True))


def test_a_run_that_searched_nothing_says_so(make_story: Any) -> None:
    status = _status(make_story("unsearched"))
    assert not status.searched
    assert "nothing was searched" in status_text(status)


def test_the_json_of_every_story_is_strict(make_story: Any) -> None:
    for name in ("empty", "seeds", "moves", "finished"):
        data = json.loads(status_json(_status(make_story(name))), parse_constant=pytest.fail)
        assert data["run"] == "runs/demo"
    assert data["winner"] == {"candidate": "i2.2", "island": "i2", "rule": "one_se"}


def test_sums_of_attempts_made_elsewhere_serve_as_well(make_story: Any) -> None:
    story = make_story("moves")
    by_hand = tally(story.made, {})
    assert status_of(story.records, by_hand, run="r", alive=True, now=1.0).spend == (
        status_of(story.records, story.made, run="r", alive=True, now=1.0).spend
    )


def test_one_unknown_price_makes_the_whole_price_unknown(make_story: Any) -> None:
    story = make_story("seeds")
    key = AttemptKey(harness="h", task="s00", task_digest="d", model="m", index=7)
    usage = Usage(output=5, dollars=None)
    story.made.insert(0, Outcome(key=key, status=Status.COMPLETED, reward=0.0, usage=usage))
    assert tally(story.made, {}).usage.dollars is None
