"""Configuration: what the user types becomes a typed plan, or is refused in words that help."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from config_words import KEY, NO_KEY, plan, refusal

from milo.app.config import (
    amend,
    conf_dir,
    differences,
    from_data,
    known_keys,
    require_budget,
    to_data,
)
from milo.app.convert import flat
from milo.app.keys import describe_keys, documented
from milo.core.budget import Budget
from milo.core.errors import ConfigError
from milo.core.plan import RunPlan, WinnerRule


def test_the_defaults_are_those_that_the_plan_documents() -> None:
    small = replace(RunPlan().model, max_calls=4, max_output_tokens=128, parallel=8)
    assert plan() == replace(RunPlan(), model=small)


def test_the_quick_budget_sets_small_sets_that_a_word_still_overrides() -> None:
    found = plan("budget=quick", "suite.test=20", "strategy=best_of_n")
    assert (found.budget, found.suite.search, found.suite.test) == (Budget(hours=0.195), 10, 20)
    assert found.strategy.name == "best_of_n"
    assert found.strategy.winner is WinnerRule.ACCURACY


def test_words_reach_the_plan() -> None:
    found = plan("suite=deskwork", "model=local", "budget.hours=0.2", "seed=3", "run=x")
    assert found.budget == Budget(hours=0.2)
    assert (found.seed, found.run) == (3, "x")


def test_a_whole_number_of_hours_becomes_a_float() -> None:
    hours = plan("budget.hours=2").budget.hours
    assert hours == 2.0 and isinstance(hours, float)


def test_the_quick_budget_is_twelve_minutes() -> None:
    assert plan("budget=quick").budget == Budget(hours=0.195)


def test_a_value_beside_a_group_wins_over_the_group_in_either_order() -> None:
    assert plan("budget=quick", "budget.hours=1").budget.hours == 1.0
    assert plan("budget.hours=1", "budget=quick").budget.hours == 1.0


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("budget.hour=1", "budget.hours"),
        ("budgt=quick", "budget"),
        ("hours=1", "budget.hours"),
        ("model.nmae=x", "model.name"),
        ("admission.alhpa=1", "admission.alpha"),
        ("strategy.admission.alpa=1", "strategy.admission.alpha"),
        ("sede=1", "seed"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_valid_one(word: str, meant: str) -> None:
    error = refusal(word)
    assert word.partition("=")[0] in error.thing
    assert meant in error.expected


def test_a_key_outside_any_group_is_refused() -> None:
    assert "zzzzqqq" in str(refusal("zzzzqqq=1"))


@pytest.mark.parametrize(
    "word", ["+seed=1", "~seed", "seed", "++budget.hours=1", "hydra.run.dir=x"]
)
def test_what_is_no_plain_assignment_is_refused(word: str) -> None:
    assert word.partition("=")[0] in str(refusal(word))


@pytest.mark.parametrize(
    ("word", "thing", "expected", "found"),
    [
        ("budget.hours=soon", "budget.hours", "a number", "'soon'"),
        ("seed=true", "seed", "a whole number", "True"),
        ("seed=1.5", "seed", "a whole number", "1.5"),
        ("strategy.orchestrator=3", "strategy.orchestrator", "true or false", "3"),
        ("strategy.memory=big", "strategy.memory", "flat, lineage, archive", "'big'"),
        ("seed=null", "seed", "a whole number", "null"),
        ("suite.families={a: 1}", "suite.families", "a list", "a"),
        ("suite.families=[1]", "suite.families[0]", "text", "1"),
        ("strategy.admission={alpha: 1}", "strategy.admission", "strategy.admission.", ""),
    ],
)
def test_a_wrong_type_says_key_expected_and_found(
    word: str, thing: str, expected: str, found: str
) -> None:
    error = refusal(word)
    assert thing in error.thing
    assert expected in error.expected
    assert found in error.found


@pytest.mark.parametrize(
    "word",
    [
        "admission.alpha=1.5",
        "admission.alpha=nan",
        "budget.hours=0",
        "budget.hours=-1",
        "budget.hours=inf",
        "suite.search=0",
        "cluster.slots=0",
        "cluster.address=ray://head:10001",
        "cluster.address=head",
        "cluster.address=:6379",
        "cluster.resource=CPU",
        "cluster.resource=node:10.0.0.1",
        "cluster.sandbox=jail",
        "cluster.image=",
        "cluster.images_gb=0",
        "tracking.wandb=maybe",
        "selection.tau=0",
        "orchestrator.kind=boss",
        "mutators.pool=[]",
        "model.name=",
    ],
)
def test_a_value_out_of_range_is_refused(word: str) -> None:
    error = refusal(word)
    assert error.expected and error.found


def test_a_key_given_twice_is_refused() -> None:
    assert "two" in refusal("seed=1", "seed=2").found


def test_a_key_given_twice_under_an_alias_is_refused() -> None:
    assert "two" in refusal("admission.alpha=1", "strategy.admission.alpha=0.1").found


def test_admission_alpha_is_short_for_the_strategys() -> None:
    assert plan("admission.alpha=1").strategy.admission.alpha == 1.0
    assert plan("winner=accuracy").strategy.winner is WinnerRule.ACCURACY


def test_text_keys_take_numbers_and_words_as_they_are_typed() -> None:
    found = plan("run=2024", "tracking.project=true", "tracking.group=007")
    assert (found.run, found.tracking.project, found.tracking.group) == ("2024", "true", "007")


def test_text_that_hydras_grammar_refuses_is_taken_as_it_is(tmp_path: Path) -> None:
    found = plan("run=runs/try (2) #1", f"seeds={tmp_path}/my (old) seed")
    assert found.run == "runs/try (2) #1"
    assert found.seeds == (f"{tmp_path}/my (old) seed",)


def test_a_malformed_list_is_refused() -> None:
    assert refusal("seeds=[a").thing == "seeds"


# --- budgets, round trips, the key set ---------------------------------------------------------


def test_a_plan_without_a_budget_is_refused_with_an_example() -> None:
    with pytest.raises(ConfigError, match=r"budget=quick, or budget\.hours=0\.2"):
        require_budget(plan())
    require_budget(plan("budget.attempts=5"))


def test_a_plan_goes_to_plain_data_and_back() -> None:
    words = (
        "strategy=b",
        "seeds=a,b",
        "budget.tokens=5",
        "model.temperature=0.5",
        "winner=accuracy",
    )
    one = plan(*words)
    assert from_data(to_data(one)) == one
    assert to_data(one)["strategy"]["selection"]["kind"] == "best"


def test_saved_data_with_an_unknown_key_is_refused() -> None:
    data = to_data(RunPlan())
    data["budget"]["hour"] = 1
    with pytest.raises(ConfigError, match=r"budget\.hours"):
        from_data(data)


def test_differences_name_the_keys() -> None:
    (change,) = differences(plan(), plan("seed=4"))
    assert str(change) == "seed: 0 -> 4"


def test_amending_changes_only_what_is_named() -> None:
    before = plan("strategy=d", "budget.hours=1", "model=openai/m", environ=KEY)
    after = amend(before, ["budget.hours=2", "admission.alpha=1"], environ=NO_KEY)
    assert [change.key for change in differences(before, after)] == [
        "strategy.admission.alpha",
        "budget.hours",
    ]


def test_amending_with_a_group_replaces_the_whole_group() -> None:
    before = plan("budget.hours=1", "budget.attempts=9")
    assert amend(before, ["budget=night"], environ=NO_KEY).budget == Budget(hours=8.0)


def test_amending_with_nothing_changes_nothing() -> None:
    before = plan("strategy=a", "mutators=operators", "seeds=x", "budget=quick")
    assert amend(before, [], environ=NO_KEY) == before


def test_the_key_set_is_pinned() -> None:
    """A key that comes, goes or is renamed changes what users' scripts may say: do it knowingly."""
    assert sorted(known_keys()) == sorted(KEYS.split())


def test_every_key_is_documented() -> None:
    undocumented = [key for key, doc in documented(RunPlan).items() if not doc]
    assert not undocumented
    text = describe_keys()
    assert all(key in text for key in known_keys())


def test_every_leaf_of_the_plan_is_a_key_under_some_name() -> None:
    from milo.app.overrides import canonical

    moved = {"seeds": "seeds.dirs"}
    assert {moved.get(k, canonical(k)) for k in flat(RunPlan())} <= known_keys()


@pytest.mark.parametrize("place", ["conf", "milo/app/conf"])
def test_the_conf_folder_is_found_in_a_checkout_and_in_a_wheel(place: str, tmp_path: Path) -> None:
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "config.yaml").touch()
    assert conf_dir(tmp_path / "milo" / "app") == tmp_path / place


def test_an_installation_without_its_conf_folder_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither"):
        conf_dir(tmp_path / "milo" / "app")


def test_the_wheel_is_told_to_carry_the_conf_folder() -> None:
    pyproject = tomllib.loads((conf_dir().parent / "pyproject.toml").read_text())
    included = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"conf": "milo/app/conf"}


KEYS = """
budget budget.attempts budget.dollars budget.hours budget.rounds budget.tokens
cluster cluster.address cluster.attempt_retries cluster.image cluster.images_gb
cluster.resource cluster.sandbox cluster.slots
model model.base_url model.call_seconds model.context model.key_variable model.max_calls
model.max_output_tokens model.max_tokens model.name model.parallel model.path model.prices
model.requests_per_minute
model.server.args model.server.context model.server.cpus model.server.gpu_type model.server.gpus
model.server.kind model.server.memory_share model.server.program model.server.reasoning_parser
model.server.replicas model.server.revision model.server.start_minutes model.server.tool_parser
model.temperature model.threads model.tokens_per_minute
mutators mutators.judge mutators.model mutators.pool mutators.registries
orchestrator orchestrator.kind
replay run seed
seeds seeds.dirs
strategy strategy.admission.alpha strategy.admission.bootstraps strategy.admission.delta
strategy.admission.epsilon strategy.admission.kind strategy.admission.probe
strategy.islands strategy.memory strategy.merge strategy.mutation_tries strategy.name
strategy.orchestrator strategy.patience strategy.pipeline_depth
strategy.selection.alpha strategy.selection.beta
strategy.selection.kind strategy.selection.tau strategy.signals
strategy.tested_seeds
strategy.winner
suite suite.families suite.judge suite.k suite.name suite.network suite.path suite.search
suite.seconds
suite.split_seed suite.test suite.validation
tracking tracking.group tracking.project tracking.tensorboard tracking.wandb
"""


def test_an_address_that_holds_a_secret_is_refused_without_showing_it():
    for address in ("http://me:canary-secret@host/v1", "http://host/v1?api_key=canary-secret"):
        refused = refusal("model=openai/m", f"model.base_url={address}")
        assert refused.thing == "model.base_url"
        assert "canary" not in str(refused)
    assert plan("model=openai/m", "model.base_url=http://host:8000/v1").model.base_url


@pytest.mark.parametrize(
    "address",
    ["localhost:8000/v1", "http://", "http://[::1/v1", "http://host:port/v1", "http://a b/v1"],
)
def test_an_address_that_can_not_be_called_is_refused(address):
    """What breaks without it: it is found once Ray is up, as a model that does not answer."""
    refused = refusal("model=openai/m", f"model.base_url='{address}'")
    assert refused.thing == "model.base_url" and "http://HOST:PORT/v1" in refused.expected
