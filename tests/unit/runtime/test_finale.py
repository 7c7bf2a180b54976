"""Who would be tested, and what an attempt of theirs takes, before the winner is frozen."""

from __future__ import annotations

import numpy as np
import pytest

from milo.core import plan as plans
from milo.core.events import CandidateProposed, CandidateScored, Change, RunEnded, WinnerFrozen
from milo.core.fitness import TaskScore
from milo.core.population import Population
from milo.core.task import Splits, Suite, Task
from milo.core.tree import FileTree
from milo.runtime.finale import attempt_s, candidates_to_test, freeze_winner
from milo.testing.synthetic_run import SyntheticRun

SEEDS = ("i1.0", "i2.0")


def plan(tested: plans.TestedSeeds) -> plans.RunPlan:
    """A plan under which the most accurate wins."""
    return plans.RunPlan(
        strategy=plans.StrategyPlan(winner=plans.WinnerRule.ACCURACY, tested_seeds=tested)
    )


@pytest.fixture(scope="module")
def population() -> Population:
    """A run of two islands up to the end of its search."""
    run = SyntheticRun(candidates=120, rng=np.random.default_rng(1), islands=2, tasks=8)
    events = [event for _, group in run.groups() for event in group]
    found = Population()
    for event in events:
        is_end = isinstance(event, WinnerFrozen | RunEnded) or getattr(event, "split", "") == "test"
        if not is_end:
            found.apply(event)
    return found


@pytest.fixture(scope="module")
def suite(population: Population) -> Suite:
    """The tasks of that run."""
    assert population.started is not None
    splits = Splits(
        search=population.started.search,
        validation=population.started.validation,
        test=population.started.test,
    )
    names = (*splits.search, *splits.validation, *splits.test)
    tasks = {
        name: Task(id=name, instruction="x", workspace=FileTree({}), tests=FileTree({}))
        for name in names
    }
    return Suite(name="synthetic", tasks=tasks, splits=splits, k=1)


def test_before_the_end_those_are_named_who_would_be_tested_now(
    population: Population, suite: Suite
) -> None:
    chosen = plan(plans.TestedSeeds.BEST)
    winner = freeze_winner(population, suite, chosen)
    assert winner is not None and winner.candidate not in SEEDS
    tested = candidates_to_test(population, suite, chosen, SEEDS)
    accuracies = {
        seed: population.lineage[seed].fitness("validation", suite.splits.validation)
        for seed in SEEDS
    }
    best = max(SEEDS, key=lambda seed: getattr(accuracies[seed], "accuracy", -1.0))
    assert tested == (winner.candidate, best)
    everyone = candidates_to_test(population, suite, plan(plans.TestedSeeds.ALL), SEEDS)
    assert everyone == (winner.candidate, *SEEDS)


def test_an_attempt_takes_the_mean_of_a_candidates_own_attempts(population: Population) -> None:
    node = population.lineage["i1.0"]
    scores = [
        score for split in ("search", "validation") for score in node.evaluation(split).values()
    ]
    mean = sum(s.n * s.latency_s for s in scores) / sum(s.n for s in scores)
    assert attempt_s(population, "i1.0") == pytest.approx(mean)
    unscored = [n.candidate for n in population.lineage if not n.evaluation("search")]
    assert all(attempt_s(population, candidate) is None for candidate in unscored)


def test_an_attempt_takes_its_whole_time_on_a_slot_not_the_harnesses_alone() -> None:
    """What breaks without it: slow verifiers make the test outlast the hours kept for it."""
    found = Population()
    found.apply(
        CandidateProposed(
            island="i1",
            candidate="i1.0",
            round=0,
            parents=(),
            harness="h",
            mutator="",
            change=Change(title="seed"),
        )
    )
    scores = {
        task: TaskScore(n=1, reward=1.0, resolved=1, tokens=1.0, latency_s=60.0, slot_s=180.0)
        for task in ("a", "b")
    }
    found.apply(CandidateScored(island="i1", candidate="i1.0", split="search", scores=scores))
    assert attempt_s(found, "i1.0") == 180.0
