"""Pass^k and pass@k, by their properties."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milo.core.fitness import TaskScore, pass_at_k
from milo.protocols.rates import over_runs, pass_at, pass_hat, rates


def score(n: int, resolved: int) -> TaskScore:
    return TaskScore(n=n, reward=resolved / n, resolved=resolved, tokens=10.0, latency_s=1.0)


counts = st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
tables = st.lists(counts, min_size=1, max_size=6).map(
    lambda rows: {f"t{i}": score(n, c) for i, (n, c) in enumerate(rows)}
)


@given(counts, st.integers(1, 8))
def test_both_rates_are_the_share_of_samples_without_replacement(
    row: tuple[int, int], k: int
) -> None:
    n, resolved = row
    k = min(k, n)
    attempts = [i < resolved for i in range(n)]
    drawn = list(combinations(attempts, k))
    table = {"t": score(n, resolved)}
    assert pass_hat(table, ["t"], k) == pytest.approx(sum(map(all, drawn)) / len(drawn))
    assert pass_at(table, ["t"], k) == pytest.approx(sum(map(any, drawn)) / len(drawn))


@given(tables)
def test_pass_hat_is_never_above_the_resolution_rate_nor_that_above_pass_at_k(
    table: dict[str, TaskScore],
) -> None:
    found = rates(table, list(table))
    assert found.pass_hat_k <= found.resolved.mean + 1e-12
    assert found.resolved.mean <= found.pass_at_k + 1e-12


@given(tables)
def test_both_rates_of_one_attempt_are_the_resolution_rate(table: dict[str, TaskScore]) -> None:
    mean = math.fsum(s.resolved / s.n for s in table.values()) / len(table)
    assert pass_hat(table, list(table), 1) == pytest.approx(mean)
    assert pass_at(table, list(table), 1) == pytest.approx(mean)


@given(tables)
def test_pass_at_all_attempts_is_the_plain_pass_at_k(table: dict[str, TaskScore]) -> None:
    for task, counted in table.items():
        assert pass_at(table, [task], counted.n) == pass_at_k(table, [task])


def test_more_attempts_than_were_made_are_refused() -> None:
    with pytest.raises(ValueError, match="k = 4"):
        pass_hat({"t": score(3, 3)}, ["t"], 4)


def test_the_error_over_runs_is_one_standard_error() -> None:
    interval = over_runs([0.5, 0.6, 0.7])
    assert interval.mean == pytest.approx(0.6)
    assert interval.half_width == pytest.approx(0.1 / math.sqrt(3))
    assert over_runs([0.5]).half_width == math.inf
