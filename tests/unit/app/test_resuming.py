"""Which changes a resume takes, and what it goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from milo.app.resuming import OnRecord, changes_of, on_record
from milo.core.budget import Budget
from milo.core.errors import RunError
from milo.core.events import CandidateProposed, Change, Event, RunResumed, RunStarted
from milo.core.plan import RunPlan, StrategyPlan
from milo.runtime.seeding import given_name, start_name
from milo.store import RunReader, RunStore, encode_plan
from milo.testing.landscape import landscape_harness

PLAN = RunPlan(run="run", budget=Budget(hours=1.0), strategy=StrategyPlan(islands=1))
SEEDS = tuple(landscape_harness({"a": n}, f"harness-{n}") for n in range(3))


class Still:
    """A clock that stands."""

    def now(self) -> float:
        """The one time there is."""
        return 1000.0


def kept(path: Path, named: object, *events: Event) -> OnRecord:
    """What a run with such events, and seeds under such names, is gone on with."""
    with RunStore.create(path, "run", encode_plan(PLAN), clock=Still()) as store:
        for number, harness in enumerate(SEEDS, start=1):
            store.put_harness(named(number), harness, (), "a seed")  # type: ignore[operator]
        store.append("run", store.claim("run"), events)
    with RunReader(path) as reader:
        return on_record(reader, reader.population())


def started(seeds: Sequence[str] = ("one", "two", "three")) -> RunStarted:
    return RunStarted(
        name="run",
        plan=encode_plan(PLAN),
        search=("t",),
        validation=(),
        test=(),
        model="m",
        seeds=tuple(seeds),
    )


def foreign(number: int) -> CandidateProposed:
    return CandidateProposed(
        island=f"i{number}",
        candidate=start_name(number),
        round=0,
        parents=(),
        harness=SEEDS[number - 1].digest,
        mutator="",
        change=Change(title="seed"),
    )


@pytest.mark.parametrize(
    "word",
    ["budget.hours=3", "budget.attempts=900", "cluster.slots=2", "tracking=off", "model.threads=1"],
)
def test_limits_places_and_trackers_may_change(word: str) -> None:
    (change, *_) = changes_of(PLAN, [word])
    assert change.key.partition(".")[0] == word.partition(".")[0].partition("=")[0]


@pytest.mark.parametrize(
    "word",
    [
        "seed=4",
        "suite.search=3",
        "strategy=b",
        "strategy.islands=2",
        "model.max_tokens=9",
        "model.max_output_tokens=9",
        "model.server.context=9",
        "model.name=gpt-5",
        "mutators.pool=[operators]",
    ],
)
def test_what_a_run_is_about_may_not(word: str) -> None:
    """What breaks without it: one run mixes results of two settings that can't be compared."""
    with pytest.raises(RunError, match="new run"):
        changes_of(PLAN, ["budget.hours=3", word])


def test_a_plain_resume_keeps_what_an_earlier_one_was_allowed_to_change(tmp_path: Path) -> None:
    words = tuple(change.override for change in changes_of(PLAN, ["budget.hours=3"]))
    found = kept(tmp_path / "run", given_name, started(), RunResumed(overrides=words), RunResumed())
    assert found.plan == replace(PLAN, budget=Budget(hours=3.0))


def test_seeds_that_have_no_numbers_yet_come_as_they_were_given(tmp_path: Path) -> None:
    found = kept(tmp_path / "run", given_name, started())
    assert [seed.name for seed in found.seeds] == ["one", "two", "three"]
    assert [seed.harness.digest for seed in found.seeds] == [seed.digest for seed in SEEDS]


def test_numbered_seeds_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    found = kept(tmp_path / "run", start_name, started(), foreign(2), foreign(3))
    assert [seed.name for seed in found.seeds] == ["harness-0", "harness-1", "harness-2"]


def test_a_run_that_has_not_started_has_no_seeds_on_record(tmp_path: Path) -> None:
    assert kept(tmp_path / "run", given_name) == OnRecord(plan=PLAN)


def test_a_run_of_a_version_that_kept_no_seeds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="earlier version"):
        kept(tmp_path / "run", start_name, started(seeds=()))
