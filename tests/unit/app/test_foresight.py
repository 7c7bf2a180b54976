"""What a run is foreseen to cost, and who is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from milo.app.foresight import Foresight, agreed, at_stake, most_of_an_attempt
from milo.core.budget import Budget, Spend
from milo.core.plan import AgentsPlan, ModelPlan, RunPlan
from milo.gateway.price_book import PriceBook
from milo.gateway.prices import FREE, Price
from milo.runtime.parts import Load
from milo.search.estimate import RunSize

SIZE = RunSize(seeds=3, islands=3, search=10, validation=10, test=20, k=1, tested=2)
LOAD = Load(busy=0, slots=10, queued=0, mean_attempt_s=36.0)
PRICES = PriceBook(prices={"local": FREE, "hosted/m": Price(uncached_input=1.0, output=10.0)})
HOSTED = RunPlan(model=ModelPlan(name="hosted/m", max_tokens=200_000), budget=Budget(dollars=5.0))


def spent(attempts: int, dollars: float = 0.01, tokens: int = 1000) -> Spend:
    return Spend(attempts=attempts, tokens=attempts * tokens, dollars=attempts * dollars)


def test_a_round_is_priced_by_the_seeds_own_figures_and_told_once() -> None:
    foresight = Foresight(SIZE, Budget(dollars=3.0))
    assert foresight.look(LOAD, spent(59)) == ""
    words = foresight.look(LOAD, spent(60))
    assert "60 attempts, 60000 tokens, $0.6, 0.06 hours" in words
    assert "about 3 rounds" in words, "3 dollars less seeds and test, at 0.6 a round"
    assert foresight.look(LOAD, spent(80)) == ""


def test_a_budget_that_turns_out_too_small_for_a_child_is_said() -> None:
    words = Foresight(SIZE, Budget(dollars=1.0)).look(LOAD, spent(60, dollars=0.015))
    assert "will not pay for a child" in words and "budget.dollars" in words


def test_the_time_limit_is_foreseen_from_slots_and_seconds() -> None:
    words = Foresight(SIZE, Budget(hours=0.2)).look(LOAD, spent(60, dollars=0.0))
    assert "$" not in words and "about 1 round" in words


def test_what_is_at_stake_is_the_cap_at_the_dearest_price() -> None:
    assert most_of_an_attempt(HOSTED, PRICES) == Spend(tokens=200_000, dollars=2.0)
    words = at_stake(HOSTED, PRICES)
    assert "at most $2 (200000 tokens)" in words and "ends it at $5" in words
    unlimited = replace(HOSTED, budget=Budget(hours=1.0))
    assert "no limit in dollars" in at_stake(unlimited, PRICES)


def test_a_free_model_and_a_replay_put_nothing_at_stake() -> None:
    assert at_stake(RunPlan(), PRICES) == ""
    assert at_stake(replace(HOSTED, replay="run"), PRICES) == ""


def test_a_server_of_the_user_s_own_is_asked_about_only_with_a_price() -> None:
    own = ModelPlan(name="hosted/m", base_url="http://host/v1", max_tokens=200_000)
    assert at_stake(replace(HOSTED, model=own), PRICES) == ""
    assert "at most $2" in at_stake(
        replace(HOSTED, model=replace(own, prices="prices.json")), PRICES
    )


def test_an_unknown_price_is_at_stake_too() -> None:
    agents = AgentsPlan(mutators=("agent_loop:new/model",), model="new/model")
    assert "what new/model costs is not known" in at_stake(RunPlan(agents=agents), PRICES)


@pytest.mark.parametrize(
    ("answer", "goes"), [("", True), ("y", True), ("n", False), (" No ", False)]
)
def test_a_terminal_is_asked_and_may_refuse(answer: str, goes: bool) -> None:
    asked: list[str] = []

    def terminal(question: str) -> str:
        asked.append(question)
        return answer

    assert agreed("an attempt costs $2", terminal) is goes
    assert "costs $2" in asked[0]


def test_without_a_terminal_or_money_nobody_is_asked() -> None:
    def terminal(question: str) -> str:
        raise AssertionError("asked")

    assert agreed("", terminal) and agreed("an attempt costs $2", None)
