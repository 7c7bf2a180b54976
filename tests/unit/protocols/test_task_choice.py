"""Selection by headroom, by sensitivity, and the aligned split, by their properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milo.core.errors import UserError
from milo.protocols.task_choice import (
    QUOTAS,
    Band,
    Responsiveness,
    Rollouts,
    apportion,
    band_of,
    by_headroom,
    by_sensitivity,
    stratified_split,
    stratum_of,
)

places = st.lists(
    st.tuples(st.floats(0, 10, width=16), st.integers(0, 9)), min_size=1, max_size=7
).flatmap(
    lambda rows: st.tuples(st.just(rows), st.integers(0, sum(capacity for _, capacity in rows)))
)
pools = st.lists(st.tuples(st.floats(0, 1), st.floats(1, 50)), min_size=1, max_size=40).map(
    lambda rows: {f"t{i:02}": Rollouts(score=s, turns=t) for i, (s, t) in enumerate(rows)}
)
responses = st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=1, max_size=40).map(
    lambda rows: {
        f"t{i:02}": Responsiveness(sensitivity=s, performance=p) for i, (s, p) in enumerate(rows)
    }
)
strata = st.lists(st.integers(0, 3), min_size=1, max_size=40).map(
    lambda rows: {f"t{i:02}": s for i, s in enumerate(rows)}
)


@given(places)
def test_all_places_are_given_and_none_above_its_capacity(
    case: tuple[list[tuple[float, int]], int],
) -> None:
    rows, total = case
    given_ = apportion(total, [w for w, _ in rows], [c for _, c in rows])
    assert sum(given_) == total
    assert all(0 <= got <= capacity for got, (_, capacity) in zip(given_, rows, strict=True))


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=7), st.integers(0, 50))
def test_where_nothing_is_full_everyone_is_within_one_of_its_share(
    weights: list[float], total: int
) -> None:
    given_ = apportion(total, weights, [total] * len(weights))
    for got, weight in zip(given_, weights, strict=True):
        assert abs(got - total * weight / sum(weights)) < 1 + 1e-9


def test_more_places_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(UserError, match="at least 5"):
        apportion(5, [1.0, 1.0], [2, 2])


@pytest.mark.parametrize(
    ("score", "band"),
    [(0.0, "frontier"), (0.1, "hard"), (0.25, "hardish"), (0.5, "mid"), (0.75, "solvable")],
)
def test_a_band_holds_its_upper_end(score: float, band: str) -> None:
    assert band_of(score) == band
    assert band_of(score + 1e-6) != band


def test_a_score_out_of_range_has_no_band() -> None:
    with pytest.raises(UserError, match="task score"):
        band_of(1.1)


@given(pools, st.data())
def test_each_band_gives_its_tasks_with_the_longest_horizon(
    pool: dict[str, Rollouts], data: st.DataObject
) -> None:
    n = data.draw(st.integers(0, len(pool)))
    chosen = by_headroom(pool, n)
    assert len(chosen) == n == len(set(chosen))
    for band in Band:
        inside = [t for t in pool if band_of(pool[t].score) is band]
        taken = [pool[t].turns for t in inside if t in chosen]
        left = [pool[t].turns for t in inside if t not in chosen]
        assert not taken or not left or min(taken) >= max(left)


def test_quotas_favour_headroom_where_every_band_is_full() -> None:
    pool = {
        f"{b}{i:03}": Rollouts(score=s, turns=i)
        for b, s in zip(Band, (0.0, 0.05, 0.2, 0.4, 0.7, 0.9), strict=True)
        for i in range(200)
    }
    chosen = by_headroom(pool, 128)
    counts = [
        sum(task.startswith(f"{band}0") or task.startswith(f"{band}1") for task in chosen)
        for band in Band
    ]
    assert sum(counts) == 128
    assert counts == [74, 31, 14, 6, 2, 1]
    assert sum(QUOTAS.values()) == pytest.approx(1.0)


@given(responses, st.data())
def test_within_a_stratum_the_more_sensitive_tasks_are_taken(
    tasks: dict[str, Responsiveness], data: st.DataObject
) -> None:
    useful = [t for t in tasks if tasks[t].sensitivity > 0]
    n = data.draw(st.integers(0, len(useful)))
    chosen = by_sensitivity(tasks, n)
    assert len(chosen) == n and set(chosen) <= set(useful)
    for where in set(chosen.values()):
        inside = [t for t in useful if stratum_of(tasks[t].performance, 5) == where]
        taken = [tasks[t].sensitivity for t in inside if t in chosen]
        left = [tasks[t].sensitivity for t in inside if t not in chosen]
        assert not left or min(taken) >= max(left)


def test_a_sparse_stratum_fills_its_quota_from_below_zero_only_if_asked() -> None:
    tasks = {"easy": Responsiveness(sensitivity=-0.1, performance=0.9)}
    tasks |= {f"t{i}": Responsiveness(sensitivity=0.5, performance=0.1) for i in range(3)}
    assert "easy" not in by_sensitivity(tasks, 3)
    assert "easy" in by_sensitivity(tasks, 4, backfill=True)
    with pytest.raises(UserError):
        by_sensitivity(tasks, 4)


@given(strata, st.integers(0, 99), st.data())
def test_a_split_is_disjoint_and_holds_every_stratum_in_proportion(
    tasks: dict[str, int], seed: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(tasks)))
    second = data.draw(st.integers(0, len(tasks) - first))
    parts = stratified_split(tasks, (first, second), seed)
    assert [len(part) for part in parts] == [first, second]
    assert len({*parts[0], *parts[1]}) == first + second
    for where in set(tasks.values()):
        share = sum(s == where for s in tasks.values()) / len(tasks)
        got = sum(tasks[t] == where for t in parts[0])
        assert abs(got - first * share) < 1 + 1e-9


def test_a_split_does_not_depend_on_the_order_of_the_tasks() -> None:
    tasks = {f"t{i}": i % 3 for i in range(12)}
    backwards = dict(reversed(tasks.items()))
    assert stratified_split(tasks, (4, 6), 1) == stratified_split(backwards, (4, 6), 1)
    assert stratified_split(tasks, (4, 6), 1) != stratified_split(tasks, (4, 6), 2)


def test_a_split_larger_than_the_suite_is_refused() -> None:
    with pytest.raises(UserError, match="at least 3 tasks"):
        stratified_split({"a": 0}, (1, 2), 0)
