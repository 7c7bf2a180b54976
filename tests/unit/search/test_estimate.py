from __future__ import annotations

import pytest

from milo.core.budget import Budget
from milo.core.errors import ConfigError
from milo.search.estimate import RunSize, estimate

SIZE = RunSize(seeds=3, islands=2, search=10, validation=5, test=20, k=2, tested=1)


def test_costs_are_counted_in_attempts():
    assert SIZE.per_child == 30
    assert SIZE.per_round == 60
    assert SIZE.for_seeds == 2 * (3 * 10 + 2 * 5)
    assert SIZE.for_test == 40
    assert estimate(SIZE, Budget(attempts=1000)).least == 80 + 30 + 40


def test_the_rounds_that_a_budget_buys_are_said():
    found = estimate(SIZE, Budget(attempts=80 + 40 + 3 * 60))
    assert found.rounds == 3
    assert "about 3 rounds" in str(found)
    assert "about 1 round" in str(estimate(SIZE, Budget(attempts=150)))


def test_a_budget_without_a_known_limit_buys_as_many_as_one_waits_for():
    found = estimate(SIZE, Budget(hours=1.0))
    assert found.rounds is None
    assert "as many rounds as you wait for" in str(found)


def test_the_tightest_limit_binds():
    found = estimate(
        SIZE,
        Budget(attempts=10_000, tokens=300_000, hours=100.0, dollars=1e6, rounds=50),
        tokens_per_attempt=1000.0,
        attempts_per_hour=100.0,
        dollars_per_attempt=0.01,
    )
    assert found.rounds == 3
    assert estimate(SIZE, Budget(attempts=10_000, rounds=2)).rounds == 2


@pytest.mark.parametrize(
    ("budget", "thing"),
    [
        (Budget(attempts=149), "budget.attempts"),
        (Budget(tokens=149_999), "budget.tokens"),
        (Budget(dollars=1.4), "budget.dollars"),
        (Budget(hours=1.4), "budget.hours"),
        (Budget(rounds=-1), "budget.rounds"),
    ],
)
def test_a_budget_that_cannot_score_one_child_is_refused_by_name(budget, thing):
    with pytest.raises(ConfigError) as caught:
        estimate(
            SIZE,
            budget,
            tokens_per_attempt=1000.0,
            dollars_per_attempt=0.01,
            attempts_per_hour=100.0,
        )
    assert caught.value.thing == thing


def test_a_run_without_rounds_pays_for_no_child():
    size = RunSize(seeds=3, islands=3, search=10, validation=10, test=10, k=1)
    needed = size.for_seeds + size.for_test
    assert estimate(size, Budget(rounds=0, attempts=needed)).rounds == 0
    with pytest.raises(ConfigError):
        estimate(size, Budget(rounds=1, attempts=needed))
