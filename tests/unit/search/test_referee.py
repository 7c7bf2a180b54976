"""The referee: which moves are possible, and what is said of those that are not."""

from __future__ import annotations

import pytest
from search_scene import LEFT, LOW, RIGHT, TASKS, Scene

from milo.core.errors import MoveRefused
from milo.core.events import IslandFounded, MoveVoided, Verdict
from milo.core.moves import Curriculum, Graft, Reassign, Speciate
from milo.search.referee import check_answer, check_move, next_island, pending_moves

# --- the referee ----------------------------------------------------------------------------------


def two_islands() -> Scene:
    scene = Scene().island("i1", LEFT).island("i2", RIGHT, mutator="b")
    scene.candidate("i1.1", ("i1.0",), LOW, Verdict.ADMITTED)
    return scene.candidate("i1.2", ("i1.0",), LOW, Verdict.REJECTED)


GOOD = {
    "reassign": Reassign(island="i1", mutator="b"),
    "graft": Graft(island="i1", donor="i2", donor_candidate="i2.0"),
    "speciate": Speciate(island="i1", root="i1.1", mutator="a", new_island="i3"),
    "curriculum": Curriculum(tasks=TASKS[:4], epoch=1),
}


@pytest.mark.parametrize("kind", GOOD)
def test_a_possible_move_passes(kind):
    check_move(GOOD[kind], two_islands().view(), "i1")


@pytest.mark.parametrize("kind", GOOD)
def test_the_same_move_pending_is_refused(kind):
    view = two_islands().answered(GOOD[kind]).view()
    assert pending_moves(view) == (GOOD[kind],)
    with pytest.raises(MoveRefused, match="not yet taken effect"):
        check_move(GOOD[kind], view, "i1")


@pytest.mark.parametrize(
    ("move", "reason"),
    [
        (Reassign(island="i9", mutator="b"), "no island 'i9'"),
        (Reassign(island="i1", mutator="z"), "no mutator 'z'"),
        (Reassign(island="i1", mutator="a"), "already has"),
        (Graft(island="i1", donor="i1", donor_candidate="i1.0"), "its own donor"),
        (Graft(island="i1", donor="i9", donor_candidate="i9.0"), "no island 'i9'"),
        (Graft(island="i1", donor="i2", donor_candidate="i2.7"), "no candidate"),
        (Graft(island="i1", donor="i2", donor_candidate="i1.1"), "the best of i2 is i2.0"),
        (Speciate(island="i1", root="i1.7", mutator="a", new_island="i3"), "no candidate"),
        (Speciate(island="i1", root="i1.0", mutator="a", new_island="i3"), "is a root"),
        (Speciate(island="i1", root="i1.2", mutator="a", new_island="i3"), "no admitted member"),
        (Speciate(island="i1", root="i1.1", mutator="z", new_island="i3"), "no mutator"),
        (Speciate(island="i1", root="i1.1", mutator="a", new_island="i2"), "the next island is i3"),
        (Curriculum(tasks=("v00",), epoch=1), "not in the search split"),
        (Curriculum(tasks=(), epoch=1), "at least one"),
        (Curriculum(tasks=("s00", "s00"), epoch=1), "once"),
        (Curriculum(tasks=TASKS, epoch=1), "was in use"),
        (Curriculum(tasks=TASKS[:4], epoch=3), "is number 1"),
    ],
)
def test_an_impossible_move_is_refused_with_the_reason(move, reason):
    with pytest.raises(MoveRefused, match=reason):
        check_move(move, two_islands().view(), "i1")


def test_a_closed_island_or_one_without_a_scored_seed_takes_no_move():
    scene = two_islands().closed("i2")
    with pytest.raises(MoveRefused, match="is closed: spent"):
        check_move(Reassign(island="i2", mutator="a"), scene.view(), "i1")
    scene.apply(IslandFounded(island="i3", mutator="a", root="i3.0", search=TASKS))
    with pytest.raises(MoveRefused, match="not yet scored its seed"):
        check_move(Reassign(island="i3", mutator="b"), scene.view(), "i1")


def test_an_unaffordable_curriculum_is_refused_with_the_sums():
    with pytest.raises(MoveRefused, match="costs 0 attempts and a child 12, but 5 are left"):
        check_move(GOOD["curriculum"], two_islands().view(attempts_left=5), "i1")


def test_a_pair_is_not_grafted_twice():
    scene = two_islands()
    scene.moved("i1", GOOD["graft"])
    with pytest.raises(MoveRefused, match="not yet made"):
        check_move(GOOD["graft"], scene.view(), "i1")
    scene.candidate("i1.3", ("i1.0", "i2.0"), LOW, Verdict.REJECTED)
    assert pending_moves(scene.view()) == ()
    with pytest.raises(MoveRefused, match="were grafted before"):
        check_move(GOOD["graft"], scene.view(), "i1")


def test_a_second_pending_graft_or_speciation_of_an_island_is_refused():
    scene = two_islands().island("i3", LOW)
    scene.answered(
        Graft(island="i1", donor="i3", donor_candidate="i3.0"),
        Speciate(island="i1", root="i1.1", mutator="b", new_island="i4"),
    )
    view = scene.view()
    with pytest.raises(MoveRefused, match="a graft that is not yet made"):
        check_move(GOOD["graft"], view, "i1")
    with pytest.raises(MoveRefused, match="a speciation that is not yet made"):
        check_move(Speciate(island="i1", root="i1.1", mutator="a", new_island="i5"), view, "i1")


def test_a_speciation_that_became_void_does_not_stand_in_the_way_of_another():
    scene = two_islands()
    void = Speciate(island="i1", root="i1.1", mutator="b", new_island="i3")
    scene.answered(void)
    scene.apply(MoveVoided(island="i1", round=1, move=void, reason="nothing is left"))
    assert pending_moves(scene.view()) == ()
    check_move(Speciate(island="i1", root="i1.1", mutator="a", new_island="i4"), scene.view(), "i1")


def test_grafting_the_same_harness_is_refused():
    scene = Scene().island("i1", LEFT)
    scene.apply(IslandFounded(island="i2", mutator="a", root="i2.0", search=TASKS))
    scene.candidate("i2.0", (), LEFT, Verdict.SEED, harness="tree i1.0")
    with pytest.raises(MoveRefused, match="the same harness"):
        check_move(GOOD["graft"], scene.view(), "i1")


def test_a_subtree_that_is_only_the_best_is_refused():
    scene = Scene().island("i1", LOW).candidate("i1.1", ("i1.0",), LEFT, Verdict.ADMITTED)
    move = Speciate(island="i1", root="i1.1", mutator="a", new_island="i2")
    with pytest.raises(MoveRefused, match="nothing but the island's best"):
        check_move(move, scene.view(), "i1")


def test_a_curriculum_is_pending_until_every_open_island_has_it():
    scene = two_islands()
    scene.moved("i1", GOOD["curriculum"])
    other = Curriculum(tasks=TASKS[:5], epoch=2)
    with pytest.raises(MoveRefused, match="not yet reached all islands"):
        check_move(other, scene.view(), "i1")
    scene.past.append(scene.past.pop())
    scene.closed("i2")
    check_move(other, scene.view(), "i1")


def test_a_move_of_a_closed_island_waits_for_nobody():
    scene = two_islands().answered(Reassign(island="i2", mutator="a")).closed("i2")
    assert pending_moves(scene.view()) == ()


def test_going_back_to_an_earlier_mutator_is_no_repetition():
    scene = two_islands()
    scene.moved("i1", Reassign(island="i1", mutator="b"))
    scene.moved("i1", Reassign(island="i1", mutator="a"), 2)
    check_move(Reassign(island="i1", mutator="b"), scene.view(), "i1")


def test_an_answer_keeps_two_moves_and_says_why_it_drops_the_rest():
    moves = [
        GOOD["reassign"],
        GOOD["reassign"],
        Graft(island="i1", donor="i9", donor_candidate="x"),
        GOOD["graft"],
        GOOD["curriculum"],
    ]
    accepted, refused = check_answer(moves, two_islands().view(), "i1")
    assert accepted == (GOOD["reassign"], GOOD["graft"])
    assert [r.reason for r in refused] == [
        "this answer already holds a reassign for the same island",
        "there is no island 'i9' with members to graft from",
        "an answer holds at most 2 moves",
    ]


def test_island_numbers_count_speciations_on_record():
    scene = two_islands().answered(GOOD["speciate"])
    assert next_island(scene.view()) == "i4"
    odd = Scene().island("i2", LOW)
    assert next_island(odd.view()) == "i3"
