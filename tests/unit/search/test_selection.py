from __future__ import annotations

import numpy as np
import pytest
from island_driver import score
from search_scene import TASKS, Scene

from milo.core.events import CandidateScored, Verdict
from milo.core.fitness import Fitness
from milo.core.plan import SelectionKind, SelectionPlan
from milo.search.selection import (
    BestSelection,
    RootSelection,
    SoftmaxSelection,
    dominance,
    selection_of,
    similarity,
)


def scene() -> Scene:
    s = Scene().island("i1", (0, 0, 0, 0, 0, 0))
    s.candidate("i1.1", ("i1.0",), (1, 1, 1, 0, 0, 0), Verdict.ADMITTED)
    return s.candidate("i1.2", ("i1.0",), (1, 1, 1, 1, 0, 0), Verdict.ADMITTED)


def test_a_single_member_is_chosen_without_a_draw():
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert SoftmaxSelection().choose(["i1.0"], scene().lineage, TASKS, rng) == "i1.0"
    assert rng.bit_generator.state == before


def test_probabilities_follow_the_formula():
    s = scene()
    members = ("i1.0", "i1.1", "i1.2")
    chances = SoftmaxSelection(alpha=0.5, tau=0.25).probabilities(members, s.lineage, TASKS)
    d = np.array([-1.0, 0.0, 1.0])
    near = 1 - 1 / 6
    sim = np.array([(0.5 + 1 / 3) / 2, (0.5 + near) / 2, (1 / 3 + near) / 2])
    weight = np.exp((0.5 * d - 0.5 * sim) / 0.25)
    assert chances == pytest.approx(weight / weight.sum())
    assert chances.sum() == pytest.approx(1.0)


def test_draws_follow_the_probabilities():
    s = scene()
    members = ("i1.0", "i1.1", "i1.2")
    select = SoftmaxSelection(tau=1.0)
    rng = np.random.default_rng(3)
    drawn = [select.choose(members, s.lineage, TASKS, rng) for _ in range(2000)]
    chances = select.probabilities(members, s.lineage, TASKS)
    assert [drawn.count(m) / 2000 for m in members] == pytest.approx(list(chances), abs=0.04)


def test_unmeasured_members_neither_dominate_nor_are_dominated():
    best, worst = Fitness(1.0, 1.0, 1.0), Fitness(0.0, 2.0, 2.0)
    assert list(dominance([best, None, worst])) == [0.5, 0.0, -0.5]
    assert list(dominance([best, best])) == [0.0, 0.0]


def test_similarity_uses_tasks_that_both_measured():
    rates = np.array([[1.0, 0.0, np.nan], [1.0, np.nan, 0.0], [np.nan, np.nan, np.nan]])
    assert list(similarity(rates)) == [0.5, 0.5, 0.0]


def test_members_without_any_score_can_still_be_chosen():
    s = Scene().island("i1", (0,) * 6)
    s.candidate("i1.1", ("i1.0",), (), Verdict.ADMITTED)
    chances = SoftmaxSelection().probabilities(("i1.1", "i1.1"), s.lineage, TASKS)
    assert list(chances) == [0.5, 0.5]


def test_best_takes_accuracy_then_tokens_and_ranks_unscored_members_last():
    s = scene()
    s.candidate("i1.3", ("i1.0",), (), Verdict.ADMITTED)
    cheap = {t: score(float(i < 4), tokens=50.0) for i, t in enumerate(TASKS)}
    s.apply(CandidateScored(island="i1", candidate="i1.3", split="search", scores=cheap))
    s.candidate("i1.4", ("i1.0",), (), Verdict.ADMITTED)
    rng = np.random.default_rng(0)
    members = ("i1.4", "i1.0", "i1.1", "i1.2", "i1.3")
    assert BestSelection().choose(members, s.lineage, TASKS, rng) == "i1.3"
    assert BestSelection().choose(members[:2], s.lineage, TASKS, rng) == "i1.0"


def test_root_always_takes_the_first_member():
    rng = np.random.default_rng(0)
    assert RootSelection().choose(("r", "x"), scene().lineage, TASKS, rng) == "r"


def test_the_plan_names_the_selection():
    plan = SelectionPlan(alpha=0.3, tau=2.0)
    assert selection_of(plan) == SoftmaxSelection(alpha=0.3, tau=2.0)
    assert selection_of(SelectionPlan(kind=SelectionKind.BEST)) == BestSelection()
    assert selection_of(SelectionPlan(kind=SelectionKind.ROOT)) == RootSelection()
