"""Diagnoses, curriculum and the rules, on hand-made populations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from search_scene import HARD, LEFT, LOW, RIGHT, TASKS, WORSE, Scene, niche_scene

from milo.core.events import IslandFounded, Verdict
from milo.core.moves import Curriculum, Diagnosis, Graft, Reassign, Speciate
from milo.core.ports import PopulationView
from milo.search.curriculum import (
    is_affordable,
    next_epoch,
    propose_curriculum,
    regrets,
    rescoring_attempts,
)
from milo.search.diagnosis import diagnose
from milo.search.referee import check_move
from milo.search.rules import RulesOrchestrator, best_other_mutator


def names(view, island: str) -> list[Diagnosis]:
    return [finding.diagnosis for finding in diagnose(view, island)]


# --- diagnosis ------------------------------------------------------------------------------------


def test_an_island_without_members_has_no_diagnosis():
    scene = Scene().apply(IslandFounded(island="i1", mutator="a", root="i1.0", search=TASKS))
    assert diagnose(scene.view(), "i1") == ()


def test_real_edits_that_bring_nothing_while_another_island_solves_more_are_exhausted_and_dry():
    scene = Scene().island("i1", LEFT).island("i2", RIGHT, mutator="b").failures("i1", WORSE)
    found = diagnose(scene.view(), "i1")
    assert [f.diagnosis for f in found[:2]] == [
        Diagnosis.EXHAUSTED_LINEAGE,
        Diagnosis.DRY_MUTATOR,
    ]
    assert found[0].donor == "i2"
    assert found[0].tasks == TASKS[3:]
    assert "solves 3 of 6 search tasks" in found[0].words
    assert "0 of these inert" in found[1].words


def test_edits_that_change_nothing_tell_of_the_mutator_before_the_lineage():
    scene = Scene().island("i1", LEFT).island("i2", RIGHT, mutator="b").failures("i1", LEFT)
    found = diagnose(scene.view(), "i1")
    assert [f.diagnosis for f in found[:2]] == [
        Diagnosis.DRY_MUTATOR,
        Diagnosis.EXHAUSTED_LINEAGE,
    ]
    assert "2 of these inert" in found[0].words


def test_what_another_island_may_solve_by_chance_is_no_gap():
    barely = (0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
    scene = Scene().island("i1", LOW).island("i2", barely, mutator="b").failures("i1", LOW)
    assert Diagnosis.EXHAUSTED_LINEAGE not in names(scene.view(), "i1")
    seldom = (0.33, 0.33, 0.33, 0.33, 0.33, 0.33)
    scene = Scene().island("i1", seldom).island("i2", RIGHT, mutator="b").failures("i1", seldom)
    assert Diagnosis.EXHAUSTED_LINEAGE not in names(scene.view(), "i1")


def test_one_island_alone_is_on_a_plateau_only_where_nothing_else_is_wrong():
    alone = names(niche_scene().view(), "i1")
    assert alone[-2:] == [Diagnosis.CROWDED_OUT_NICHE, Diagnosis.PLATEAU]
    two = names(niche_scene().island("i2", LEFT).failures("i2", WORSE).view(), "i1")
    assert two[-2:] == [Diagnosis.PLATEAU, Diagnosis.CROWDED_OUT_NICHE]


def test_an_admission_among_the_last_children_rules_out_a_dry_mutator():
    scene = Scene().island("i1", LOW).failures("i1", LOW)
    scene.candidate("i1.3", ("i1.0",), LEFT, Verdict.ADMITTED)
    assert names(scene.view(), "i1") == []


def test_a_dry_mutator_counts_only_children_since_its_assignment():
    scene = Scene().island("i1", LOW).failures("i1", LOW)
    scene.moved("i1", Reassign(island="i1", mutator="b"), 3)
    assert Diagnosis.DRY_MUTATOR not in names(scene.view(), "i1")
    scene.failures("i1", LOW)
    assert Diagnosis.DRY_MUTATOR in names(scene.view(), "i1")


def test_a_child_admitted_by_chance_does_not_hide_a_dry_mutator_but_a_cheaper_one_does():
    scene = Scene().island("i1", LOW).failures("i1", LOW)
    scene.candidate("i1.9", ("i1.0",), LOW, Verdict.ADMITTED)
    assert Diagnosis.DRY_MUTATOR not in names(scene.view(), "i1"), "validation may have improved"
    scene.stalled("i1", 2)
    found = {f.diagnosis: f.words for f in diagnose(scene.view(), "i1")}
    assert "1 admitted by chance" in found[Diagnosis.DRY_MUTATOR]
    scene.candidate("i1.10", ("i1.0",), LOW, Verdict.ADMITTED, costs={"tokens": 1.0})
    assert Diagnosis.DRY_MUTATOR not in names(scene.view(), "i1")


def test_inert_counts_small_patches_but_not_invalid_children_or_real_changes():
    scene = Scene().island("i1", LOW)
    scene.candidate("i1.1", ("i1.0",), LOW, Verdict.REJECTED, patch_lines=1)
    scene.candidate("i1.2", ("i1.0",), (), Verdict.INVALID)
    scene.candidate("i1.3", ("i1.0",), (0.33, 0, 0, 0, 0, 0), Verdict.REJECTED)
    words = diagnose(scene.view(patience=3), "i1")[0].words
    assert "1 invalid, 2 not admitted, 1 of these inert" in words


def test_a_subtree_that_solves_other_tasks_and_is_no_parent_is_a_crowded_out_niche():
    found = {f.diagnosis: f for f in diagnose(niche_scene().view(), "i1")}
    niche = found[Diagnosis.CROWDED_OUT_NICHE]
    assert niche.root == "i1.1"
    assert niche.tasks == ("s03", "s04")


def test_a_niche_that_is_a_frequent_parent_is_not_crowded_out():
    scene = niche_scene()
    scene.candidate("i1.5", ("i1.1",), LOW, Verdict.REJECTED)
    scene.candidate("i1.6", ("i1.1",), LOW, Verdict.REJECTED)
    assert Diagnosis.CROWDED_OUT_NICHE not in names(scene.view(), "i1")


def test_islands_at_one_ceiling_are_on_a_plateau():
    scene = Scene().island("i1", LEFT).island("i2", LEFT)
    scene.failures("i1", WORSE).failures("i2", WORSE)
    assert names(scene.view(), "i1") == [Diagnosis.PLATEAU, Diagnosis.DRY_MUTATOR]


def test_an_island_that_is_young_has_just_improved_or_stands_apart_rules_out_a_plateau():
    scene = Scene().island("i1", LEFT).failures("i1", WORSE).island("i2", WORSE)
    assert Diagnosis.PLATEAU not in names(scene.view(), "i1")
    scene.failures("i2", LOW, n=1).candidate("i2.2", ("i2.0",), LEFT, Verdict.ADMITTED)
    assert Diagnosis.PLATEAU not in names(scene.view(), "i1")
    apart = Scene().island("i1", LEFT).island("i2", LOW)
    apart.failures("i1", WORSE).failures("i2", LOW)
    assert Diagnosis.PLATEAU not in names(apart.view(), "i1")


# --- curriculum -----------------------------------------------------------------------------------


def regret_scene() -> Scene:
    scene = Scene().island("i1", LOW, stall=2).island("i2", HARD, stall=2).island("i3", LOW)
    return scene


def test_regret_is_the_best_rate_less_the_mean_over_admitted_harnesses():
    first = regrets(regret_scene().view())[0]
    assert first.regret == pytest.approx(0.67 - 0.67 / 3)
    assert first.successes == 3
    assert first.qualifies


def test_one_lucky_attempt_does_not_make_a_task_learnable():
    scene = Scene().island("i1", LOW).island("i2", (0.3,) * 6)
    assert not any(r.qualifies for r in regrets(scene.view()))


def test_the_curriculum_takes_the_highest_regret_in_split_order():
    move = propose_curriculum(regret_scene().view())
    assert move == Curriculum(tasks=TASKS[:4], epoch=1)


def test_no_curriculum_where_too_few_qualify_or_it_was_used_or_cannot_be_paid():
    scene = regret_scene()
    assert propose_curriculum(scene.view(attempts_left=11)) is None
    assert propose_curriculum(scene.view(attempts_left=12)) is not None
    assert propose_curriculum(on_all_tasks(), minimum=5) is None
    assert propose_curriculum(on_all_tasks(Curriculum(tasks=TASKS[:4], epoch=1))) is None


def test_where_the_present_set_tells_nothing_more_the_whole_split_is_searched_again():
    scene = regret_scene()
    whole = scene.view().search_split
    found = propose_curriculum(scene.view(), minimum=5)
    assert found == Curriculum(tasks=whole, epoch=1)
    check_move(found, scene.view(), "i1")
    scene.answered(Curriculum(tasks=TASKS[:4], epoch=1))
    assert next_epoch(scene.view()) == 2
    assert propose_curriculum(scene.view()) == Curriculum(tasks=whole, epoch=2)
    assert propose_curriculum(scene.view(attempts_left=11), minimum=5) is None


def on_all_tasks(*past: Curriculum) -> PopulationView:
    """The regret scene where the search set is the whole split."""
    scene = regret_scene()
    scene.answered(*past)
    return replace(scene.view(), search_split=TASKS)


def test_rescoring_counts_only_the_attempts_that_are_lacking():
    view = regret_scene().view()
    assert rescoring_attempts(view, TASKS) == 0
    assert rescoring_attempts(view, ("s05", "s06")) == 9
    assert is_affordable(view, ("s06",))


# --- the rules ------------------------------------------------------------------------------------


async def test_rules_graft_and_reassign_an_exhausted_island():
    scene = Scene().island("i1", LEFT, stall=2).island("i2", RIGHT)
    scene.failures("i1", WORSE).stalled("i1", 2, 2)
    answer = await RulesOrchestrator().consult(scene.view(), "i1")
    assert answer.moves == (
        Graft(island="i1", donor="i2", donor_candidate="i2.0"),
        Reassign(island="i1", mutator="b"),
    )
    assert answer.diagnosis is Diagnosis.EXHAUSTED_LINEAGE
    assert (answer.island, answer.round) == ("i1", 2)
    assert "no better validation accuracy for 2 rounds" in answer.words


async def test_rules_speciate_a_niche():
    scene = niche_scene()
    scene.pool = ("a",)
    answer = await RulesOrchestrator().consult(scene.view(patience=3), "i1")
    first = answer.moves[0]
    assert first == Speciate(island="i1", root="i1.1", mutator="a", new_island="i2")


async def test_rules_replace_the_search_set_on_a_plateau():
    scene = Scene().island("i1", (0.67, 0.67, 0, 0, 0, 0), stall=2)
    scene.island("i2", (0, 0, 0.67, 0.67, 0, 0), stall=2)
    scene.failures("i1", (0.67, 0, 0, 0, 0, 0)).failures("i2", (0, 0, 0.67, 0, 0, 0))
    scene.pool = ("a",)
    answer = await RulesOrchestrator().consult(scene.view(), "i1")
    assert answer.diagnosis is Diagnosis.PLATEAU
    assert answer.moves == (Curriculum(tasks=TASKS[:4], epoch=1),)


async def test_rules_with_a_pool_of_one_say_why_nothing_is_done():
    scene = Scene().island("i1", LOW).failures("i1", LOW)
    scene.pool = ("a",)
    view = replace(scene.view(), search_split=TASKS)
    answer = await RulesOrchestrator().consult(view, "i1")
    assert answer.moves == ()
    assert "no move is made" in answer.words
    assert "nothing can be done about" in answer.words
    assert "dry mutator" in answer.words


async def test_rules_find_nothing_wrong_and_say_so():
    answer = await RulesOrchestrator().consult(Scene().island("i1", LOW).view(), "i1")
    assert answer.diagnosis is Diagnosis.HEALTHY
    assert "no signal" in answer.words


async def test_rules_report_a_refused_move_in_words():
    scene = Scene().island("i1", LEFT, stall=2).island("i2", RIGHT)
    scene.candidate("i1.1", ("i1.0", "i2.0"), WORSE, Verdict.REJECTED)
    scene.failures("i1", WORSE)
    scene.pool = ("a",)
    answer = await RulesOrchestrator().consult(scene.view(), "i1")
    assert answer.diagnosis is Diagnosis.EXHAUSTED_LINEAGE
    assert "graft was refused: i1.0 and i2.0 were grafted before" in answer.words
    assert len(answer.refused) == 1


def test_the_other_mutator_is_a_free_one_with_the_best_record():
    scene = Scene().island("i1", LOW, mutator="a").island("i2", LOW, mutator="c")
    scene.candidate("i2.1", ("i2.0",), LEFT, Verdict.ADMITTED, mutator="d")
    scene.candidate("i2.2", ("i2.0",), LEFT, Verdict.REJECTED, mutator="b")
    view = scene.view(pool=("a", "b", "c", "d"))
    assert best_other_mutator(view, "a") == "d"
    assert best_other_mutator(scene.view(pool=("a",)), "a") == ""
