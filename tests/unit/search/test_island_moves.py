"""What moves do to an island, at the boundary of its rounds."""

from __future__ import annotations

import pytest
from island_driver import (
    PATIENT,
    SEARCH,
    World,
    after_round_0,
    answer,
)

from milo.core.events import (
    CandidateScored,
    Change,
    FrameFixed,
    MoveApplied,
    MoveVoided,
)
from milo.core.moves import Curriculum, Graft, Reassign, Speciate
from milo.core.population import Population
from milo.core.topology import best_member, moved_members
from milo.search.island import (
    Island,
    NeedChild,
    NeedRound,
    NeedScores,
)
from milo.search.voiding import why_void


def test_reassign_changes_who_makes_the_next_child_and_resets_the_stall():
    island, _ = after_round_0()
    events = island.begin_round([Reassign(island="i1", mutator="b")])
    assert events == [MoveApplied(island="i1", round=1, move=Reassign(island="i1", mutator="b"))]
    assert island.proposed("t", Change(title="x"))[0].mutator == "b"


def test_moves_of_other_islands_give_no_event_and_void_moves_are_recorded_as_such():
    island, _ = after_round_0()
    voids = [
        Graft(island="i1", donor="i2", donor_candidate="i2.9"),
        Speciate(island="i1", root="i1.0", mutator="a", new_island="i4"),
        Curriculum(tasks=SEARCH[:4], epoch=0),
    ]
    events = island.begin_round([Reassign(island="i2", mutator="b"), *voids])
    assert [(type(event), event.move) for event in events] == [(MoveVoided, v) for v in voids]
    assert all(event.reason and event.round == 1 for event in events)
    assert island.topology.moves == []


def test_a_graft_of_a_child_that_was_never_made_is_void():
    """What breaks without it: the run can't be resumed, since nobody has such a harness."""
    world = World(strategy=PATIENT)
    world.run(until=lambda: world.population.topology["i2"].round >= 1)
    donor = world.islands["i2"]
    while not isinstance(need := donor.ask(), NeedChild):
        world.step("i2")
    while isinstance(donor.ask(), NeedChild):
        world.write("i2", donor.sent_back("the mutator failed"))
    graft = Graft(island="i1", donor="i2", donor_candidate=need.candidate)
    state, lineage = world.population.topology["i1"], world.population.lineage
    assert why_void(graft, state, lineage) == f"there is no harness of the donor {need.candidate}"


def test_a_graft_takes_the_own_best_first_and_is_used_up_by_one_child():
    world = World(strategy=PATIENT)
    world.run(until=lambda: all(i.state.round >= 2 for i in world.islands.values()))
    donor = best_member(world.population.topology["i2"], world.population.lineage)
    world.order("i1", Graft(island="i1", donor="i2", donor_candidate=donor))
    start = world.population.topology["i1"].round
    world.run(until=lambda: world.population.topology["i1"].round > start + 2)
    grafts = [n for n in world.population.lineage if len(n.parents) == 2]
    assert [n.parents[1] for n in grafts] == [donor]
    assert grafts[0].parents[0].startswith("i1.")
    assert world.population.topology["i1"].pending_graft == ""


def test_a_graft_equal_to_the_donor_is_invalid():
    world = World(strategy=PATIENT)
    world.run(until=lambda: all(i.state.round >= 1 for i in world.islands.values()))
    world.order("i1", Graft(island="i1", donor="i2", donor_candidate="i2.0"))
    island = world.islands["i1"]
    while not (isinstance(need := island.ask(), NeedChild) and len(need.parents) == 2):
        world.step("i1")
    events = island.proposed("seed2", Change(title="copy"))
    assert events[1].reason == "the child is identical to its parent i2.0"


def test_speciate_founds_an_island_that_scores_nothing_and_starts_at_its_sources_round():
    world, move, members = world_with_subtree()
    source = world.population.topology["i1"]
    world.order("i1", move)
    world.run(until=lambda: "i4" in world.islands)
    new = world.islands["i4"]
    assert new.state.members == members
    assert (new.state.stall, new.state.mutator, new.state.source) == (0, "b", "i1")
    assert new.state.frame == source.frame
    assert isinstance(new.ask(), NeedRound)
    assert not set(members) & set(world.islands["i1"].state.members)
    world.run(until=lambda: new.state.round > source.round + 3)
    own = [n.candidate for n in new.lineage.of_island("i4")]
    assert own[:2] == ["i4.1", "i4.2"]


def world_with_subtree() -> tuple[World, Speciate, tuple[str, ...]]:
    world = World(strategy=PATIENT, rounds=60)
    found: list[tuple[str, tuple[str, ...]]] = []

    def ready() -> bool:
        state = world.population.topology["i1"]
        if not isinstance(world.islands["i1"].ask(), NeedRound):
            return False
        for root in state.members[1:]:
            moved = moved_members(state, root, world.population.lineage)
            if moved:
                found[:] = [(root, moved)]
        return bool(found)

    world.run(until=ready)
    root, moved = found[0]
    return world, Speciate(island="i1", root=root, mutator="b", new_island="i4"), moved


def test_speciate_and_curriculum_at_one_boundary_score_the_new_island_on_the_new_tasks():
    world, move, _ = world_with_subtree()
    world.order("i1", Curriculum(tasks=SEARCH[:5], epoch=1), move)
    world.run(until=lambda: "i4" in world.islands and bool(world.islands["i4"].state.frame))
    new = world.islands["i4"].state
    assert (new.epoch, new.search) == (1, SEARCH[:5])
    assert new.frame is not None
    assert new.frame.seed_accuracy == world.population.topology["i1"].frame.seed_accuracy


def test_curriculum_scores_what_is_lacking_and_fixes_a_new_frame_without_new_verdicts():
    island, _ = after_round_0(strategy=PATIENT)
    old = island.state.frame
    tasks = (*SEARCH[:3], "s89", "s91")
    events = island.begin_round([Curriculum(tasks=tasks, epoch=1)])
    asked = {}
    while isinstance(need := island.ask(), NeedScores):
        asked[need.candidate] = need.tasks
        events += answer(island, need)
    assert asked == dict.fromkeys(("i1.0", "i2.0", "i3.0"), ("s89", "s91"))
    assert [e.kind for e in events] == ["move_applied", "candidate_scored", "frame_fixed"]
    assert isinstance(events[-1], FrameFixed)
    assert (events[-1].epoch, events[-1].search) == (1, tasks)
    assert island.state.frame != old
    assert isinstance(island.ask(), NeedChild)


def test_after_a_curriculum_a_seed_that_cannot_be_scored_leaves_the_floor():
    island, _ = after_round_0(strategy=PATIENT)
    island.begin_round([Curriculum(tasks=("s89", "s91"), epoch=1)])
    while isinstance(need := island.ask(), NeedScores):
        island.scored(need.candidate, need.split, {})
    assert island.state.frame is not None
    assert island.state.frame.seed_accuracy == pytest.approx(1 / 6)
    assert isinstance(island.ask(), NeedChild)


def test_twenty_rounds_with_all_four_moves_leave_one_consistent_population():
    world, move, _ = world_with_subtree()
    donor = best_member(world.population.topology["i2"], world.population.lineage)
    world.order("i1", move, Reassign(island="i2", mutator="a"))
    world.run(until=lambda: "i4" in world.islands)
    world.order("i3", Graft(island="i3", donor="i2", donor_candidate=donor))
    world.order("i3", Curriculum(tasks=SEARCH[:8], epoch=1))
    rounds = {name: island.state.round + 20 for name, island in world.islands.items()}
    world.run(until=lambda: all(world.islands[n].state.round >= r for n, r in rounds.items()))
    kinds = {m.kind for _, _, m in world.population.topology.moves}
    assert kinds == {"reassign", "graft", "speciate", "curriculum"}
    assert_consistent(world)


def assert_consistent(world: World) -> None:
    lineage = world.population.lineage
    for node in lineage:
        assert all(parent in lineage for parent in node.parents)
        assert node.candidate.split(".")[0] == node.island
    for name, island in world.islands.items():
        assert island.state == world.population.topology[name]
        restored = Island.restore(world.setup_of(name), world.shard(name), world.foreign(name))
        assert restored.settle() == []
        assert restored.state == island.state
        for node in lineage.of_island(name):
            assert restored.lineage[node.candidate] == lineage[node.candidate]
    assert Population.of(world.records()).topology.islands == world.population.topology.islands


def test_rescored_members_keep_their_scores_and_foreign_rescoring_changes_nothing():
    """A resumed island must know exactly what the live one knew, or its mutators differ."""
    world, move, members = world_with_subtree()
    world.order("i1", Curriculum(tasks=(*SEARCH[:5], "s89"), epoch=1))
    world.run(until=lambda: at_boundary(world, "i1") and world.islands["i1"].state.epoch == 1)
    world.order("i1", move)
    world.run(until=lambda: "i4" in world.islands)
    copies = [e for e in world.shard("i4") if isinstance(e, CandidateScored)]
    assert {e.candidate for e in copies} >= set(members)
    assert all(list(e.scores) == ["s89"] for e in copies)
    assert isinstance(world.islands["i4"].ask(), NeedRound)
    world.order("i1", Curriculum(tasks=("s91", "s92"), epoch=2))
    world.run(until=lambda: all(i.state.epoch == 2 for i in world.islands.values()))
    world.run(until=lambda: world.islands["i4"].state.frame is not None)
    for name, island in world.islands.items():
        restored = Island.restore(world.setup_of(name), world.shard(name), world.foreign(name))
        for node in island.lineage:
            assert restored.lineage[node.candidate] == node


def at_boundary(world: World, name: str) -> bool:
    return isinstance(world.islands[name].ask(), NeedRound)
