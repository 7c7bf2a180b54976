"""Splits: disjoint, stratified, fixed by a seed, of the sizes asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from milo.core.errors import ConfigError, TaskError
from milo.core.plan import SuitePlan
from milo.core.task import Suite, Task
from milo.core.tree import FileTree
from milo.suites.check import check_suite
from milo.suites.splits import split
from milo.suites.suite import load_suite


def tasks_of(**families: int) -> Mapping[str, Task]:
    return {
        f"{name}-{i:03d}": Task(id=f"{name}-{i:03d}", instruction="x", family=name)
        for name, count in families.items()
        for i in range(count)
    }


def test_splits_have_the_sizes_asked_for_and_share_no_task() -> None:
    splits = split(tasks_of(a=30, b=30, c=30), (24, 18, 40), 7)
    assert [len(splits.search), len(splits.validation), len(splits.test)] == [24, 18, 40]
    assert len({*splits.search, *splits.validation, *splits.test}) == 82


@pytest.mark.parametrize("seed", range(8))
def test_each_split_holds_the_families_in_proportion(seed: int) -> None:
    tasks = tasks_of(a=40, b=40, c=20)
    splits = split(tasks, (20, 10, 50), seed)
    for ids in (splits.search, splits.validation, splits.test):
        found = Counter(tasks[task_id].family for task_id in ids)
        for family, share in (("a", 0.4), ("b", 0.4), ("c", 0.2)):
            assert abs(found[family] - share * len(ids)) < 2


def test_the_split_depends_on_the_seed_and_not_on_the_order_of_tasks() -> None:
    tasks = tasks_of(a=20, b=20)
    backwards = dict(reversed(tasks.items()))
    assert split(tasks, (8, 8, 8), 1) == split(backwards, (8, 8, 8), 1)
    assert split(tasks, (8, 8, 8), 1) != split(tasks, (8, 8, 8), 2)


def test_too_few_tasks_are_refused_with_the_numbers() -> None:
    with pytest.raises(TaskError, match=r"12 tasks \(suite.search=4, .*found 10 tasks"):
        split(tasks_of(a=10), (4, 4, 4), 0)


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(TaskError, match="a size of at least 0, found -1"):
        split(tasks_of(a=10), (4, 4, -1), 0)


def test_no_test_split_is_allowed_but_an_empty_search_split_is_not() -> None:
    assert split(tasks_of(a=10), (4, 4, 0), 0).test == ()
    with pytest.raises(TaskError, match="split search"):
        split(tasks_of(a=10), (0, 4, 0), 0)


def test_deskwork_loads_with_the_default_plan_and_one_attempt_per_task() -> None:
    suite = load_suite(SuitePlan())
    assert (suite.name, suite.k) == ("deskwork", 1)
    found = Counter(task.family for task in suite.split("test"))
    assert set(found) == {"shell", "extract", "sums", "logs", "repair"}
    assert max(found.values()) - min(found.values()) <= 2


def test_only_the_families_asked_for_are_in_the_suite() -> None:
    suite = load_suite(SuitePlan(families=("logs",), search=10, validation=10, test=5, k=2))
    assert {task.family for task in suite.tasks.values()} == {"logs"}
    assert suite.k == 2


def test_an_unknown_suite_or_family_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"suite.name: .*nearest: deskwork.*found 'deskwrk'"):
        load_suite(SuitePlan(name="deskwrk"))
    with pytest.raises(ConfigError, match=r"suite.families: .*nearest: shell.*found 'shel'"):
        load_suite(SuitePlan(families=("shel",)))
    with pytest.raises(ConfigError, match=r"suite\.k"):
        load_suite(SuitePlan(k=-1))


async def test_a_broken_task_is_quarantined_by_name_and_reason() -> None:
    solution = FileTree.of_texts({"solve.sh": "x"})
    rewards = {"good": (0.0, 1.0), "free": (0.5, 1.0), "wrong": (0.0, 0.5), "mute": (0.0, None)}
    tasks = {name: Task(id=name, instruction="x", solution=solution) for name in rewards}
    tasks["open"] = Task(id="open", instruction="x")

    async def run_task(task: Task, tree: FileTree | None) -> float | None:
        return rewards.get(task.id, (0.0, 0.0))[tree is not None]

    suite = Suite(name="s", tasks=tasks, splits=split(tasks, (2, 2, 1), 0))
    report = await check_suite(suite, run_task)
    assert {bad.task: bad.reason for bad in report.quarantined} == {
        "free": "a no-op must score 0, found 0.5",
        "wrong": "the reference solution must score 1, found 0.5",
        "mute": "the reference solution must score 1, found no reward",
    }
    assert (report.checked, report.unproved) == (5, ("open",))


def test_seconds_of_the_plan_stand_in_for_what_every_task_says() -> None:
    own = load_suite(SuitePlan())
    given = load_suite(SuitePlan(seconds=7.5))
    assert {task.limits.agent_timeout_s for task in given.tasks.values()} == {7.5}
    assert all(task.limits.agent_timeout_s > 7.5 for task in own.tasks.values())
    some = next(iter(own.tasks))
    assert given.tasks[some].digest != own.tasks[some].digest


def test_seconds_in_which_no_optimizer_gets_anywhere_are_refused() -> None:
    plan = SuitePlan(name="arena", families=("circle-packing",), search=1, validation=1, test=0)
    with pytest.raises(ConfigError, match=r"suite\.seconds: expected at least 5 .* found 4\.9"):
        load_suite(replace(plan, seconds=4.9))
    tasks = load_suite(replace(plan, seconds=5.0)).tasks
    assert {task.limits.agent_timeout_s for task in tasks.values()} == {5.0}
