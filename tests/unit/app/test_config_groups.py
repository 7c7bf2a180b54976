"""Groups: their options, values that are none, what the environment and a strategy choose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from config_words import KEY, plan, refusal

from milo.app.config import (
    compose,
    differences,
    groups,
)
from milo.core.errors import ConfigError
from milo.core.plan import MemoryKind, RunPlan, SelectionKind

# --- values that are no option of their group ---------------------------------------------------


def test_a_model_that_is_no_file_of_its_group_is_a_litellm_model() -> None:
    found = plan("model=openrouter/qwen/qwen3:free")
    assert found.model.name == "openrouter/qwen/qwen3:free"


def test_a_near_miss_of_an_embedded_model_is_refused() -> None:
    assert "'local'" in str(refusal("model=locl"))


def test_a_gguf_file_is_the_embedded_model_with_that_path(tmp_path: Path) -> None:
    for words in (["model=w.gguf"], ["model=local", "model.path=w.gguf"]):
        found = plan(*words, cwd=tmp_path).model
        assert (found.name, found.path) == ("local", str(tmp_path / "w.gguf"))


def test_a_path_beside_a_hosted_model_is_refused() -> None:
    assert refusal("model=openai/gpt-4o", "model.path=w.gguf").thing == "model.path"


def test_a_folder_is_a_suite(tmp_path: Path) -> None:
    (tmp_path / "chores").mkdir()
    found = plan("suite=chores", "suite.test=0", cwd=tmp_path).suite
    assert (found.name, found.path, found.test) == ("chores", str(tmp_path / "chores"), 0)


def test_a_suite_that_is_neither_built_in_nor_a_folder_is_refused() -> None:
    error = refusal("suite=deskwrok")
    assert "a folder of tasks" in error.expected
    assert "'deskwork'" in error.found


@pytest.mark.parametrize("word", ["seeds=one,two", "seeds=[one,two]", "seeds.dirs=[one,two]"])
def test_seeds_are_directories_in_a_list(word: str, tmp_path: Path) -> None:
    assert plan(word, cwd=tmp_path).seeds == (str(tmp_path / "one"), str(tmp_path / "two"))


def test_one_seed_needs_no_list(tmp_path: Path) -> None:
    assert plan("seeds=one", cwd=tmp_path).seeds == (str(tmp_path / "one"),)


def test_mutators_are_a_pool_in_order() -> None:
    found = plan("mutators=operators,agent_loop:openai/m")
    assert found.agents.mutators == ("operators", "agent_loop:openai/m")


def test_an_unknown_mutator_is_refused_with_the_nearest() -> None:
    assert "'operators'" in refusal("mutators=operator").expected


def test_an_unknown_option_of_a_closed_group_is_refused_with_the_nearest() -> None:
    error = refusal("strategy=best_of")
    assert error.thing == "strategy" and "best_of_n" in error.expected


# --- what depends on the environment ------------------------------------------------------------


def test_without_a_key_operators_propose_and_rules_orchestrate() -> None:
    agents = plan("model=openai/gpt-4o").agents
    assert (agents.mutators, agents.orchestrator) == (RunPlan().agents.mutators, "rules")


def test_with_a_key_and_a_hosted_model_that_model_proposes_and_orchestrates() -> None:
    agents = plan("model=openai/gpt-4o", environ=KEY).agents
    assert agents.mutators == ("agent_loop:openai/gpt-4o",)
    assert (agents.orchestrator, agents.model) == ("agent", "openai/gpt-4o")


def test_with_a_key_alone_nothing_hosted_is_used() -> None:
    agents = plan(environ=KEY).agents
    assert (agents.mutators, agents.orchestrator, agents.model) == (
        RunPlan().agents.mutators,
        "rules",
        "",
    )


def test_a_hosted_mutator_model_may_improve_an_embedded_target() -> None:
    agents = plan("mutators.model=openai/big", environ=KEY).agents
    assert (agents.mutators, agents.orchestrator) == (("agent_loop:openai/big",), "agent")


def test_what_the_user_names_wins_over_the_environment() -> None:
    words = ("model=openai/gpt-4o", "mutators=operators", "orchestrator=rules")
    agents = plan(*words, environ=KEY).agents
    assert (agents.mutators, agents.orchestrator) == (("operators",), "rules")


def test_a_keys_value_is_never_in_the_plan() -> None:
    assert "canary" not in repr(plan("model=openai/gpt-4o", environ=KEY))


def test_a_value_cannot_pull_a_secret_out_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is in the plan is saved with the run and shown: keys must not get there."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    assert "canary" not in repr(plan("mutators.judge=${oc.env:OPENAI_API_KEY}"))
    with pytest.raises(ConfigError) as refused:
        plan("model.base_url=${oc.env:OPENAI_API_KEY}")
    assert "canary" not in str(refused.value)


def test_an_empty_key_counts_as_none() -> None:
    assert plan("model=openai/x", environ={"OPENAI_API_KEY": " "}).agents.orchestrator == "rules"


@pytest.mark.parametrize(
    "words", [("mutators=agent_loop",), ("orchestrator=agent",), ("strategy=a",)]
)
def test_a_model_driven_part_without_a_model_is_refused(words: tuple[str, ...]) -> None:
    assert "mutators.model" in refusal(*words).expected


# --- strategies -----------------------------------------------------------------------------------


def test_the_ablations_add_one_part_each() -> None:
    a, b, c, d, e = (
        plan(f"strategy={name}", "mutators.model=openai/m", environ=KEY) for name in "abcde"
    )
    assert a.agents.mutators == ("single_call:openai/m",)
    assert b.agents.mutators == ("agent_loop:openai/m",)
    assert {x.key for x in differences(a, b)} == {"strategy.name", "agents.mutators"}
    assert b.strategy.selection.kind is SelectionKind.BEST and b.strategy.islands == 1
    assert b.strategy.memory is MemoryKind.FLAT and not b.strategy.orchestrator
    assert {x.key for x in differences(b, c)} == {
        "strategy.name",
        "strategy.memory",
        "strategy.selection.kind",
    }
    assert {x.key for x in differences(c, d)} == {"strategy.name", "strategy.islands"}
    assert {x.key for x in differences(d, e)} == {"strategy.name", "strategy.orchestrator"}


def test_strategy_e_is_milo_under_its_letter() -> None:
    e = plan("strategy=e")
    assert replace(e, strategy=replace(e.strategy, name="milo")) == plan()


def test_best_of_n_mutates_the_seeds_independently() -> None:
    strategy = plan("strategy=best_of_n").strategy
    assert strategy.selection.kind is SelectionKind.ROOT
    assert not strategy.orchestrator and strategy.memory is MemoryKind.FLAT


def test_best_of_seeds_makes_no_round() -> None:
    assert plan("strategy=best_of_seeds").budget.rounds == 0


def test_an_explicit_mutator_wins_over_the_strategys() -> None:
    assert plan("strategy=a", "mutators=operators").agents.mutators == ("operators",)


def test_the_orchestrator_can_be_left_out() -> None:
    assert not plan("orchestrator=off").strategy.orchestrator


@pytest.mark.parametrize("group", sorted(groups()))
def test_every_option_of_every_group_composes(group: str) -> None:
    wants = {"vllm": ["model.name=org/weights"]}
    for option in groups()[group]:
        if option not in ("folder", "default"):
            words = [f"{group}={option}", "mutators.model=openai/m", *wants.get(option, [])]
            plan(*words, environ=KEY)


def test_open_weights_on_a_server_of_the_run_are_a_model() -> None:
    made = plan("model=vllm", "model.name=openai/gpt-oss-120b", "model.server.gpus=4")
    assert (made.model.server.kind, made.model.server.gpus) == ("vllm", 4)
    assert plan("model=vllm", "model.name=m", "model.server.args=[--max-num-seqs,'64']")
    with pytest.raises(ConfigError, match=r"model\.name"):
        plan("model=vllm")
    with pytest.raises(ConfigError, match=r"model\.server\.kind"):
        plan("model=vllm", "model.name=m", "model.base_url=http://host/v1")


def test_a_run_s_own_server_is_no_model_for_mutators() -> None:
    """Its name at the hub may be that of a provider's model, which costs money."""
    made = compose(
        ["model=vllm", "model.name=openai/gpt-oss-120b"], environ={"OPENAI_API_KEY": "k"}
    )
    assert made.agents.model == "" and made.agents.orchestrator == "rules"
