"""Which models a run pays for, and that a limit in dollars binds all of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from config_words import KEY, plan, refusal

from milo.app import cli
from milo.app.cli import USER_ERROR, main
from milo.app.compose import AppParts, key_of, require_key
from milo.app.multirun import prepare
from milo.app.pricing import AT_RESUME, price_book, require_prices, unpriced
from milo.core.errors import ConfigError
from milo.core.plan import ModelPlan, RunPlan
from milo.core.ports import Upstream
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.litellm_upstream import LitellmUpstream
from milo.gateway.prices import FREE, Price

OWN = ("model=mine", "model.base_url=http://127.0.0.1:9/v1")
UNKNOWN = "openai/of-my-own"


def refused(found: RunPlan, *way: str) -> str:
    with pytest.raises(ConfigError) as caught:
        require_prices(found, price_book(found), *way)
    return str(caught.value)


def prices(folder: Path, **models: dict[str, float]) -> str:
    path = folder / "mine.json"
    path.write_text(json.dumps(models))
    return f"model.prices={path}"


# --- a limit in dollars -------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(f"model={UNKNOWN}",), OWN, ("model=vllm", "model.name=a/b")])
def test_a_limit_in_dollars_over_an_unknown_price_is_refused_with_the_way_out(
    words: tuple[str, ...],
) -> None:
    """It would count nothing and so bind nothing: unknown is not zero."""
    found = plan(*words, "budget.dollars=5", "budget.hours=1")
    said = refused(found)
    assert "budget.dollars=5" in said and found.model.name in said
    assert "model.prices=FILE" in said and "uncached_input" in said


@pytest.mark.parametrize("cost", [0.0, 2.0])
def test_a_price_of_ones_own_lifts_the_refusal(cost: float, tmp_path: Path) -> None:
    given = prices(tmp_path, mine={"uncached_input": cost, "output": cost})
    found = plan(*OWN, given, "budget.dollars=5")
    require_prices(found, price_book(found))
    assert unpriced(found, price_book(found)) == ()


def test_a_price_file_without_the_model_is_named(tmp_path: Path) -> None:
    given = prices(tmp_path, mien={"uncached_input": 1.0, "output": 1.0})
    said = refused(plan(*OWN, given, "budget.dollars=5"))
    assert "none of mine in" in said and "mine.json" in said


def test_known_prices_other_limits_and_a_replay_are_not_refused() -> None:
    known = plan("model=openai/gpt-4o-mini", "budget.dollars=5")
    for found in (
        known,
        plan("budget.dollars=5"),
        plan(f"model={UNKNOWN}", "budget.hours=1"),
        replace(known, model=ModelPlan(name=UNKNOWN), replay="run"),
    ):
        require_prices(found, price_book(found))


def test_a_resume_says_how_to_lift_the_limit() -> None:
    said = refused(plan(*OWN, "budget.dollars=5"), AT_RESUME)
    assert "--allow-changes budget.dollars=null" in said
    lifted = plan(*OWN, "budget.dollars=null", "budget.hours=1")
    require_prices(lifted, price_book(lifted))


@pytest.mark.usefixtures("no_keys", "workdir")
def test_it_is_refused_before_anybody_is_asked_or_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def asked(question: str) -> str:
        raise AssertionError(question)

    monkeypatch.setattr(cli, "_terminal", lambda: asked)
    assert main(["run", f"model={UNKNOWN}", "budget.dollars=5"]) == USER_ERROR
    assert UNKNOWN in capsys.readouterr().err
    with pytest.raises(ConfigError, match=UNKNOWN):
        prepare(["seed=1,2", f"model={UNKNOWN}", "budget.dollars=5"], Path("many"), terminal=None)
    assert not list(Path().iterdir())


# --- who is paid --------------------------------------------------------------------------------


def test_only_models_that_are_called_need_a_price() -> None:
    """A model named for mutators that are not in the pool costs nothing."""
    words = ("model=openai/gpt-4o-mini", f"mutators.model={UNKNOWN}", "budget.dollars=5")
    idle = plan(*words, "mutators=operators", "orchestrator=rules")
    assert unpriced(idle, price_book(idle)) == ()
    for more in (
        ("mutators=agent_loop", "orchestrator=rules"),
        ("mutators=operators", "orchestrator=agent"),
        ("mutators=operators", "orchestrator=rules", f"mutators.judge={UNKNOWN}"),
    ):
        busy = plan(*words, *more)
        assert unpriced(busy, price_book(busy)) == (UNKNOWN,)


def lines_of(found: RunPlan, folder: Path) -> tuple[Upstream, Upstream, Price | None]:
    """The frozen model, the first mutator's, and what that one pays."""
    parts = AppParts(plan=found, path=folder, prices=price_book(found))
    line = parts._agent_line(found.agents.mutators[0])
    return parts._target(folder), line.upstream, line.price


def test_an_agent_that_thinks_with_the_frozen_model_asks_the_same_server(tmp_path: Path) -> None:
    """litellm knows no model by the name that a server of one's own gives it."""
    given = prices(tmp_path, mine={"uncached_input": 3.0, "output": 4.0})
    found = plan(*OWN, given, "mutators=agent_loop", "budget.dollars=5")
    require_prices(found, price_book(found))
    target, agents, price = lines_of(found, tmp_path)
    assert isinstance(target, HttpUpstream) and isinstance(agents, HttpUpstream)
    assert agents._url == "http://127.0.0.1:9/v1"
    assert price is not None and price.output == 4.0


def test_an_agent_with_a_model_of_its_own_goes_to_its_provider(tmp_path: Path) -> None:
    words = ("mutators=agent_loop", "mutators.model=openai/gpt-4o-mini")
    _, agents, price = lines_of(plan(*OWN, *words), tmp_path)
    assert isinstance(agents, LitellmUpstream) and price not in (None, FREE)


def test_a_server_is_asked_for_the_name_as_it_is_given(tmp_path: Path) -> None:
    """vLLM and routers name their models with the slashes of the hub."""
    words = ("model=openai/gpt-oss-120b", OWN[1])
    target, _, _ = lines_of(plan(*words, "mutators=agent_loop"), tmp_path)
    assert isinstance(target, HttpUpstream) and target._wire_model == "openai/gpt-oss-120b"


# --- whose key ----------------------------------------------------------------------------------


def test_the_key_is_the_one_of_the_variable_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a server of one's own is not given the key of OpenAI."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-openai")
    monkeypatch.setenv("MY_SERVER_KEY", "canary-mine")
    own = plan(*OWN).model
    assert key_of(own) == "sk-canary-openai"
    assert key_of(replace(own, key_variable="MY_SERVER_KEY")) == "canary-mine"
    hosted = plan("model=openai/m", "model.key_variable=MY_SERVER_KEY")
    assert key_of(hosted.model) == "canary-mine"
    assert key_of(plan("model=openai/m").model) == "", "litellm finds its own"
    monkeypatch.delenv("MY_SERVER_KEY")
    with pytest.raises(ConfigError, match="MY_SERVER_KEY"):
        require_key(hosted)


@pytest.mark.parametrize("given", ["sk-canary-1234", "canary0123456789abcdef", "MY_VARIABLE"])
def test_a_key_in_place_of_its_variable_is_refused_without_showing_it(given: str) -> None:
    error = refusal(*OWN, f"model.key_variable={given}", environ=KEY)
    assert error.thing == "model.key_variable" and given not in str(error)


def test_a_key_that_nobody_would_be_given_is_refused() -> None:
    assert refusal("model=local", "model.key_variable=A_KEY").thing == "model.key_variable"
