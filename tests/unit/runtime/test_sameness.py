"""A run goes on with the model and the tasks that it began with, or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from milo.core.errors import RunError
from milo.core.events import RunStarted
from milo.core.task import Suite
from milo.runtime.sameness import check_same, digests
from milo.testing.landscape import landscape_suite


@pytest.fixture
def suite() -> Suite:
    return landscape_suite(4, ("a", "b"))


@pytest.fixture
def started(suite: Suite) -> RunStarted:
    splits = suite.splits
    return RunStarted(
        name="run",
        plan={},
        search=splits.search,
        validation=splits.validation,
        test=splits.test,
        model="local[sha256=1]",
        tasks=digests(suite),
    )


def test_an_unchanged_run_passes(started: RunStarted, suite: Suite) -> None:
    check_same(started, suite, "local[sha256=1]")


def test_another_model_is_refused_by_both_names(started: RunStarted, suite: Suite) -> None:
    with pytest.raises(RunError, match=r"local\[sha256=1\].*local\[sha256=2\]"):
        check_same(started, suite, "local[sha256=2]")


def test_changed_and_missing_tasks_are_named_but_not_all_of_many(
    started: RunStarted, suite: Suite
) -> None:
    tasks = {name: replace(task, instruction="new") for name, task in suite.tasks.items()}
    del tasks["t000"]
    splits = replace(suite.splits, search=suite.splits.search[1:])
    with pytest.raises(RunError, match=r"t000 is gone, t001 is changed.*8 more"):
        check_same(started, replace(suite, tasks=tasks, splits=splits), started.model)


def test_the_same_tasks_in_other_splits_are_refused(started: RunStarted, suite: Suite) -> None:
    splits = replace(suite.splits, search=suite.splits.test, test=suite.splits.search)
    with pytest.raises(RunError, match="split in another way"):
        check_same(started, replace(suite, splits=splits), started.model)
