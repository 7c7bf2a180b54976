"""Words of the command line: aliases, lists, sweeps and the names of their jobs."""

from __future__ import annotations

import pytest

from milo.app.config import known_keys
from milo.app.overrides import assignments, canonical, expand
from milo.core.errors import ConfigError

KEYS = known_keys()


def jobs(*words: str) -> list[tuple[str, ...]]:
    return [job.overrides for job in expand(words, KEYS)]


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("admission.alpha", "strategy.admission.alpha"),
        ("selection.kind", "strategy.selection.kind"),
        ("winner", "strategy.winner"),
        ("agents.mutators", "mutators.pool"),
        ("agents.orchestrator", "orchestrator.kind"),
        ("budget.hours", "budget.hours"),
        ("admissions.alpha", "admissions.alpha"),
    ],
)
def test_short_names_stand_for_full_keys(short: str, full: str) -> None:
    assert canonical(short) == full


def test_every_combination_is_one_job_and_the_last_sweep_runs_fastest() -> None:
    assert jobs("seed=1,2", "strategy=a,milo", "budget=quick") == [
        ("seed=1", "strategy=a", "budget=quick"),
        ("seed=1", "strategy=milo", "budget=quick"),
        ("seed=2", "strategy=a", "budget=quick"),
        ("seed=2", "strategy=milo", "budget=quick"),
    ]


def test_ranges_and_choices_sweep_as_in_hydra() -> None:
    assert jobs("seed=range(1,4)") == [("seed=1",), ("seed=2",), ("seed=3",)]
    assert jobs("strategy=choice(a,b)") == [("strategy=a",), ("strategy=b",)]


def test_a_sweep_over_lists_keeps_each_list_whole() -> None:
    assert jobs("seeds=[x,y],[z]") == [("seeds=[x,y]",), ("seeds=[z]",)]


def test_no_sweep_is_one_job() -> None:
    (job,) = expand(["seed=1"], KEYS)
    assert (job.name, job.overrides) == ("0", ("seed=1",))


def test_jobs_are_named_after_what_varies() -> None:
    names = [job.name for job in expand(["seed=1,2", "model=openai/a b,m", "budget=quick"], KEYS)]
    assert names[0] == "0-seed=1+model=openai_a_b"
    assert names[3] == "3-seed=2+model=m"


def test_swept_words_parse_again_as_single_values() -> None:
    for job in expand(["run=a b,c", "seed=1,2"], KEYS):
        assert len(assignments(job.overrides, KEYS)) == 2


def test_an_interval_is_no_sweep_of_listed_values() -> None:
    with pytest.raises(ConfigError, match="listed values"):
        expand(["selection.alpha=interval(0,1)"], KEYS)


def test_an_unknown_key_in_a_sweep_is_refused() -> None:
    with pytest.raises(ConfigError, match="'seed'"):
        expand(["sed=1,2"], KEYS)


def test_a_sweep_without_multirun_is_refused_and_told_of_it() -> None:
    with pytest.raises(ConfigError, match="milo run -m"):
        assignments(["seed=1,2"], KEYS)


def test_lists_need_no_brackets_without_multirun() -> None:
    (one,) = assignments(["suite.families=shell,sums"], KEYS)
    assert one.value == ["shell", "sums"]
