"""The figures that trackers plot, against those made anew from the population at each point."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from milo.core.events import CandidateScored, Record, RunResumed, Verdict
from milo.core.hypervolume import Frame, hypervolume
from milo.core.population import Population
from milo.testing.synthetic_run import SyntheticRun
from milo.views.cost_note import NAME, CostNote
from milo.views.findings import COLUMNS, Findings, best_candidate, lineage_of
from milo.views.points import PointFold, tracker_points
from milo.views.trackers import EveryTracker, Follower, NullTracker


def synthetic(candidates: int = 160) -> list[Record]:
    """A run with all four moves."""
    run = SyntheticRun(
        candidates=candidates,
        rng=np.random.default_rng(3),
        islands=3,
        tasks=6,
        keep_outcomes=False,
    )
    groups = list(run.groups())
    events = [(shard, event) for shard, group in groups for event in group]
    return [
        Record(seq=seq, time=1000.0 + 2 * seq, shard=shard, epoch=1, event=event)
        for seq, (shard, event) in enumerate(events)
    ]


def volume(population: Population, members: Any, tasks: Any, frame: Frame) -> float:
    known = [population.lineage[m].fitness("search", tasks) for m in members]
    return hypervolume(frame.points([f for f in known if f is not None]), frame.reference)


def test_hypervolume_is_that_of_the_members_at_every_point() -> None:
    """It is kept up to date member by member, which must come to the same."""
    records = synthetic()
    fold, population = PointFold(), Population()
    checked, kinds = 0, set()
    for record in records:
        population.apply(record.event)
        point = fold.apply(record)
        if point is None:
            continue
        kinds.add(record.event.kind)
        islands = population.topology.islands
        for island, state in islands.items():
            found = point.values.get(f"island/{island}/hypervolume")
            if found is not None:
                assert state.frame is not None
                wanted = volume(population, state.members, state.search, state.frame)
                assert math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-15), record.seq
                checked += 1
        first = next(iter(islands.values()))
        if first.frame is not None:
            everybody = [m for state in islands.values() for m in state.members]
            wanted = volume(population, everybody, first.search, first.frame)
            found = point.values["population/hypervolume"]
            assert math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-15), record.seq
    assert checked > 100
    assert kinds >= {"move_applied", "frame_fixed", "island_founded", "candidate_judged"}
    assert len(population.topology.islands) > 3, "a speciated island is among them"


def test_coverage_is_the_share_of_tasks_that_could_be_scored(make_story: Any) -> None:
    story = make_story("seeds")
    assert list(tracker_points(story.records))[-1].values["run/coverage"] == 1.0
    story.propose("i1.1", "i1.0")
    before = sum(len(r.event.scores) for r in story.records if isinstance(r.event, CandidateScored))
    missing = tuple(f"s{i:02}" for i in range(4))
    story.add(
        CandidateScored(island="i1", candidate="i1.1", split="search", scores={}, missing=missing)
    )
    story.judge("i1.1", Verdict.REJECTED, "incomplete")
    coverage = list(tracker_points(story.records))[-1].values["run/coverage"]
    assert coverage == pytest.approx(before / (before + 4))


def test_seconds_do_not_count_the_time_between_a_stop_and_its_resume(make_story: Any) -> None:
    story = make_story("seeds")
    before = list(tracker_points(story.records))[-1].values["run/seconds"]
    story.add(RunResumed(), after=9_000.0)
    story.consult("i1", 1, "healthy")
    assert list(tracker_points(story.records))[-1].values["run/seconds"] == before + 3.0


# --- what it costs -------------------------------------------------------------------------------


class Points:
    """A tracker that keeps what it is told."""

    fault = ""

    def __init__(self) -> None:
        self.points: dict[int, dict[str, float]] = {}
        self.asked = 0

    @property
    def last_step(self) -> int:
        return max(self.points, default=-1)

    def log(self, step: int, values: Any) -> None:
        self.points[step] = dict(values)

    def publish(self, findings: Any) -> None:
        self.asked += 1
        findings()

    def finish(self, summary: Any) -> None:
        pass


def follow(path: Path, records: list[Record], parts: list[tuple[int, float]], known: int) -> Points:
    """Follow records in parts, each with what the ledger says when it comes."""
    seen = Points()
    follower = Follower(seen, CostNote(path), known=known)  # type: ignore[arg-type]
    begin = 0
    for end, dollars in parts:
        follower.spent(dollars)
        follower.update(records[begin:end])
        begin = end
    return seen


def test_dollars_of_the_past_are_the_same_after_a_kill_and_a_resume(
    make_story: Any, tmp_path: Path
) -> None:
    records = make_story("finished").records
    first = follow(tmp_path, records, [(20, 0.25), (40, 1.5)], known=-1)
    with (tmp_path / NAME).open("a") as file:
        file.write("[41, 1.")  # killed in the middle of a line
    second = follow(tmp_path, records, [(len(records), 9.0)], known=records[39].seq)
    for step, values in first.points.items():
        assert second.points[step] == values
    dollars = [values["spent/dollars"] for _, values in sorted(second.points.items())]
    assert dollars[0] == 0.25 and dollars[-1] == 9.0
    assert dollars == sorted(dollars)
    third = follow(tmp_path, records, [(len(records), 99.0)], known=records[-1].seq)
    assert third.points == second.points


def test_what_was_spent_before_anybody_followed_is_not_made_up(
    make_story: Any, tmp_path: Path
) -> None:
    records = make_story("finished").records
    seen = follow(tmp_path, records, [(len(records), 9.0)], known=records[29].seq)
    early = [v for step, v in seen.points.items() if step <= records[29].seq]
    late = [v for step, v in seen.points.items() if step > records[29].seq]
    assert early and all("spent/dollars" not in values for values in early)
    assert late and all(values["spent/dollars"] == 9.0 for values in late)


def test_a_disk_that_takes_nothing_more_does_not_end_the_search(
    make_story: Any, tmp_path: Path
) -> None:
    (tmp_path / NAME).mkdir()
    records = make_story("finished").records
    seen = follow(tmp_path, records, [(20, 0.25), (len(records), 1.5)], known=-1)
    assert seen.points[seen.last_step]["spent/dollars"] == 1.5


def test_an_unknown_price_is_no_cost_of_zero(make_story: Any) -> None:
    seen = Points()
    follower = Follower(seen)  # type: ignore[arg-type]
    follower.spent(0.0)
    follower.update(make_story("finished").records)
    assert all("spent/dollars" not in values for values in seen.points.values())


# --- what is found -------------------------------------------------------------------------------


def test_the_best_harness_is_the_winner_or_the_best_validated_member(make_story: Any) -> None:
    finished = Population.of(make_story("finished").records)
    assert best_candidate(finished) == "i2.2"
    assert best_candidate(Population.of(make_story("moves").records)) == "i2.2"
    assert best_candidate(Population.of(make_story("seed_wins").records)) == "i2.0"
    assert best_candidate(Population()) == ""
    told = lineage_of(finished, "i2.2")
    assert [edge["candidate"] for edge in told["path"]] == ["i2.0", "i2.2"]  # type: ignore[attr-defined]
    assert told["is_winner"] is True and set(told["scores"]) == {"search", "validation", "test"}  # type: ignore[call-overload]


def test_findings_are_made_once_for_all_trackers_and_not_at_all_for_none() -> None:
    made: list[int] = []

    def findings() -> Findings:
        made.append(1)
        return Findings(rows=((None,) * len(COLUMNS),))

    first, second = Points(), Points()
    EveryTracker(first, NullTracker(), second).publish(findings)  # type: ignore[arg-type]
    assert (first.asked, second.asked, len(made)) == (1, 1, 1)
    NullTracker().publish(findings)
    assert len(made) == 1
