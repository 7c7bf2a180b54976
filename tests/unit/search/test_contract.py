"""Preserve-and-extend: the measured contract, the classes, the union, by their properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from island_driver import score

from milo.core.fitness import TaskScore
from milo.search.contract import ChildClass, assess, class_of, solved, uncovered

TASKS = tuple(f"s{i:02}" for i in range(6))
rewards = st.lists(st.sampled_from([0, 1 / 3, 2 / 3, 1]), min_size=6, max_size=6)
evaluations = rewards.map(lambda row: dict(zip(TASKS, map(score, row), strict=True)))
sets = st.frozensets(st.sampled_from(TASKS))


@given(evaluations, evaluations)
def test_gain_is_what_is_won_less_what_is_lost(
    child: dict[str, TaskScore], parent: dict[str, TaskScore]
) -> None:
    there, back = assess(child, parent, TASKS), assess(parent, child, TASKS)
    assert there.gain == pytest.approx(-back.gain)
    assert there.gain == pytest.approx(back.regression - there.regression)
    assert there.regression >= 0


@given(evaluations, evaluations, st.floats(0, 6))
def test_a_child_that_holds_the_contract_loses_at_most_delta_on_solved_tasks(
    child: dict[str, TaskScore], parent: dict[str, TaskScore], delta: float
) -> None:
    if assess(child, parent, TASKS).holds(delta):
        lost = sum(max(0.0, parent[t].reward - child[t].reward) for t in solved(parent, TASKS))
        assert lost <= delta + 1e-6


@given(evaluations)
def test_a_copy_is_neutral_and_is_not_promoted(parent: dict[str, TaskScore]) -> None:
    found = assess(parent, parent, TASKS)
    assert found.kind is ChildClass.NEUTRAL
    assert not found.holds(6.0)


@given(sets, sets)
def test_the_four_classes_part_all_pairs_of_solved_sets(
    child: frozenset[str], parent: frozenset[str]
) -> None:
    kind = class_of(child, parent)
    assert kind.preserves == (child >= parent)
    assert (kind is ChildClass.STEPPING_STONE) == (child < parent)
    assert (kind is ChildClass.ARCHIVED) == (not child <= parent and not child >= parent)


@given(evaluations, st.lists(evaluations, min_size=1, max_size=3))
def test_nothing_is_uncovered_exactly_where_the_union_is_solved(
    child: dict[str, TaskScore], parents: list[dict[str, TaskScore]]
) -> None:
    union = frozenset().union(*(solved(parent, TASKS) for parent in parents))
    assert (not uncovered(child, parents, TASKS)) == (union <= solved(child, TASKS))


def test_only_tasks_that_both_have_measured_are_compared() -> None:
    child, parent = {"s00": score(1.0)}, {"s00": score(0.0), "s01": score(1.0)}
    found = assess(child, parent, TASKS)
    assert (found.gain, found.regression, found.kind) == (1.0, 0.0, ChildClass.IMPROVER)
