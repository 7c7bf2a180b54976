"""The island driven in memory, without Ray, files or a model."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from island_driver import (
    SEARCH,
    VALIDATION,
    World,
    outcome_of,
    seed_refs,
    setup_of,
)

from milo.core.attempt import Usage
from milo.core.errors import RecordError
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Change,
    FrameFixed,
    IslandClosed,
    MoveApplied,
    MoveVoided,
    ProposalSentBack,
    RoundEnded,
    Verdict,
)
from milo.core.moves import Curriculum, Graft, Reassign, Speciate
from milo.core.plan import AdmissionPlan, SelectionKind, SelectionPlan, StrategyPlan
from milo.core.population import Population
from milo.core.topology import best_member, moved_members
from milo.search.island import (
    Closed,
    Island,
    NeedChild,
    NeedConsultation,
    NeedRound,
    NeedScores,
)

PATIENT = StrategyPlan(admission=AdmissionPlan(alpha=1.0), patience=100)


def answer(island: Island, need: NeedScores, harness: str | None = None) -> list:
    scores = {t: outcome_of(harness or need.harness, t, need.k) for t in need.tasks}
    return island.scored(need.candidate, need.split, scores)


def founded(**changes: object) -> tuple[Island, list]:
    return Island.found(setup_of(**changes), "a", seed_refs()[0], SEARCH)


def after_round_0(**changes: object) -> tuple[Island, list]:
    island, events = founded(**changes)
    while isinstance(need := island.ask(), NeedScores):
        events += answer(island, need)
    return island, events


def in_round_1(**changes: object) -> tuple[Island, list]:
    island, events = after_round_0(**changes)
    return island, events + island.begin_round()


def test_round_0_scores_all_seeds_then_fixes_the_frame_and_validates_its_own():
    island, events = founded()
    asked = []
    while isinstance(need := island.ask(), NeedScores):
        assert island.ask() == need
        asked.append((need.candidate, need.split))
        events += answer(island, need)
    assert asked == [
        ("i1.0", "search"),
        ("i2.0", "search"),
        ("i3.0", "search"),
        ("i1.0", "validation"),
    ]
    kinds = [event.kind for event in events]
    assert kinds == [
        "island_founded",
        "candidate_proposed",
        "candidate_scored",
        "frame_fixed",
        "candidate_judged",
        "candidate_scored",
        "round_ended",
    ]
    assert island.ask() == NeedRound(round=1)
    assert island.state.members == ("i1.0",)


def test_the_frame_takes_the_costliest_seed_and_its_own_seeds_accuracy():
    island, _ = after_round_0()
    frame = island.state.frame
    fitness = [[outcome_of(seed.harness, task, 3) for task in SEARCH] for seed in seed_refs()]
    tokens = [sum(s.tokens for s in scores) / len(scores) for scores in fitness]
    assert frame is not None
    assert frame.token_scale == pytest.approx(max(tokens))
    own = sum(s.reward for s in fitness[0]) / len(SEARCH)
    assert frame.seed_accuracy == pytest.approx(max(own, 1 / 36))


def test_a_child_is_scored_judged_and_validated_only_if_admitted():
    island, _ = in_round_1(strategy=PATIENT)
    seen = set()
    for _ in range(30):
        need = island.ask()
        assert isinstance(need, NeedChild)
        island.proposed(f"tree {need.candidate}", Change(title="x"), 4)
        need = island.ask()
        assert isinstance(need, NeedScores)
        assert need.split == "search"
        events = answer(island, need)
        verdict = next(e.verdict for e in events if isinstance(e, CandidateJudged))
        seen.add(verdict)
        if verdict is Verdict.ADMITTED:
            need = island.ask()
            assert isinstance(need, NeedScores)
            assert need.split == "validation"
            events = answer(island, need)
        assert isinstance(events[-1], RoundEnded)
        island.begin_round()
    assert seen == {Verdict.ADMITTED, Verdict.REJECTED}


def test_a_stalled_island_asks_for_a_consultation_once_a_round():
    island, _ = in_round_1()
    for _ in range(2):
        need = island.ask()
        assert isinstance(need, NeedChild)
        for _ in range(3):
            events = island.sent_back("no")
        assert events[-1].kind == "round_ended"
        if island.state.stall < 2:
            island.begin_round()
    assert island.ask() == NeedConsultation(round=2)
    assert island.consulted() == []
    assert island.ask() == NeedRound(round=3)


def test_without_an_orchestrator_nobody_is_consulted():
    island, _ = in_round_1(strategy=StrategyPlan(orchestrator=False, patience=1))
    for _ in range(3):
        island.sent_back("no")
    assert island.ask() == NeedRound(round=2)


def test_a_child_sent_back_too_often_is_recorded_invalid_with_the_reason():
    island, _ = in_round_1()
    first = island.ask()
    (back,) = island.sent_back("smoke test failed", Usage(calls=1), "in full")
    assert back == ProposalSentBack(
        island="i1",
        candidate="i1.1",
        round=1,
        reason="smoke test failed",
        full="in full",
        usage=Usage(calls=1),
    )
    second = island.ask()
    assert isinstance(first, NeedChild)
    assert isinstance(second, NeedChild)
    assert (second.error, second.tries) == ("smoke test failed", 1)
    assert second.seed != first.seed
    assert second.parents == first.parents
    island.sent_back("again", Usage(calls=1))
    events = island.sent_back("still broken", Usage(calls=1))
    proposed, judged, ended = events
    assert (proposed.harness, proposed.tries, proposed.usage.calls) == ("", 3, 3)
    assert (judged.verdict, judged.reason) == (Verdict.INVALID, "still broken")
    assert proposed.sent_back == ("in full", "again", "still broken")
    assert (ended.round, ended.stall) == (1, 1)


@pytest.mark.parametrize("harness", ["seed1", "tree one"])
def test_a_child_equal_to_its_parent_or_an_earlier_one_is_invalid(harness):
    strategy = replace(PATIENT, selection=SelectionPlan(kind=SelectionKind.ROOT))
    island, _ = in_round_1(strategy=strategy)
    island.proposed("tree one", Change(title="x"))
    while isinstance(need := island.ask(), NeedScores):
        answer(island, need)
    island.begin_round()
    events = island.proposed(harness, Change(title="y"))
    assert events[1].verdict is Verdict.INVALID
    assert "identical" in events[1].reason
    assert harness in island.known_digests()


def test_an_incomplete_child_is_asked_for_again_twice_then_left_without_a_verdict():
    island, _ = in_round_1()
    island.proposed("tree", Change(title="x"))
    need = island.ask()
    assert isinstance(need, NeedScores)
    some = {t: outcome_of("tree", t, 3) for t in need.tasks[2:]}
    island.scored(need.candidate, "search", some, missing=need.tasks[:2])
    again = island.ask()
    assert isinstance(again, NeedScores)
    assert again.tasks == need.tasks[:2]
    island.scored(need.candidate, "search", {})
    events = island.scored(need.candidate, "search", {})
    assert [e.kind for e in events] == ["candidate_scored", "round_ended"]
    assert events[0].missing == need.tasks[:2]
    assert island.lineage[need.candidate].verdict is None
    assert island.ask() == NeedRound(round=2)


def test_an_incomplete_validation_ends_the_round_without_an_improvement():
    island, _events = after_round_0()
    best = island.state.best_validation
    island.begin_round()
    for _ in range(20):
        need = island.ask()
        assert isinstance(need, NeedChild)
        island.proposed(f"tree {need.candidate}", Change(title="x"))
        while isinstance(need := island.ask(), NeedScores):
            if need.split == "validation":
                island.scored(need.candidate, need.split, {})
            else:
                answer(island, need)
        if island.state.stall and len(island.state.members) > 1:
            break
        if isinstance(island.ask(), NeedConsultation):
            island.consulted()
        island.begin_round()
    assert len(island.state.members) > 1
    assert island.state.best_validation == best


def test_a_seed_without_a_valid_attempt_closes_its_island_with_the_reason():
    island, _ = founded()
    for _ in range(3):
        island.scored("i1.0", "search", {})
    for seed in ("i2.0", "i3.0"):
        need = island.ask()
        assert isinstance(need, NeedScores)
        assert need.candidate == seed
        events = answer(island, need)
    assert isinstance(events[-1], IslandClosed)
    assert "no valid attempt on 12 of 12 search tasks" in events[-1].reason
    assert isinstance(island.ask(), Closed)


def test_another_islands_broken_seed_is_left_out_of_the_scale():
    island, _ = founded()
    answer(island, island.ask())
    for _ in range(3):
        island.scored("i2.0", "search", {})
    answer(island, island.ask())
    frame = island.state.frame
    assert frame is not None
    tokens = [
        sum(outcome_of(h, t, 3).tokens for t in SEARCH) / len(SEARCH) for h in ("seed1", "seed3")
    ]
    assert frame.token_scale == pytest.approx(max(tokens))


def test_reaching_the_last_round_closes_the_island():
    island, _ = in_round_1(rounds=1)
    for _ in range(3):
        events = island.sent_back("no")
    assert events[-1].reason == "round 1 of 1 is done"
    assert island.close("again") == []


def test_a_budget_without_rounds_closes_after_the_seed():
    island, _ = after_round_0(rounds=0)
    assert isinstance(island.ask(), Closed)


def test_a_restored_island_knows_what_was_sent_back_and_what_that_cost():
    """A killed island must neither pay for a refused proposal again nor forget that it paid."""
    island, events = in_round_1()
    events += island.sent_back("no", Usage(calls=2))
    restored = Island.restore(setup_of(), events)
    assert restored.settle() == []
    assert restored.ask() == island.ask()
    assert restored.ask().tries == 1
    told = [i.proposed("tree", Change(title="x"), 3, Usage(calls=1)) for i in (island, restored)]
    assert told[0] == told[1] and told[0][0].usage.calls == 3


def test_tells_that_answer_nothing_are_ignored():
    island, _ = after_round_0()
    state = island.state
    assert island.scored("i1.0", "search", {}) == []
    assert island.proposed("x", Change(title="x")) == []
    assert island.sent_back("x") == []
    assert island.consulted() == []
    assert island.state == state
    island.begin_round()
    assert island.begin_round([Reassign(island="i1", mutator="b")]) == []


def test_closing_is_recorded_once_and_ends_asking():
    island, _ = after_round_0()
    events = island.close("the budget is spent")
    assert [e.reason for e in events] == ["the budget is spent"]
    assert island.ask() == Closed(reason="the budget is spent")


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
    tasks = (*SEARCH[:3], "s90", "s91")
    events = island.begin_round([Curriculum(tasks=tasks, epoch=1)])
    asked = {}
    while isinstance(need := island.ask(), NeedScores):
        asked[need.candidate] = need.tasks
        events += answer(island, need)
    assert asked == dict.fromkeys(("i1.0", "i2.0", "i3.0"), ("s90", "s91"))
    assert [e.kind for e in events] == ["move_applied", "candidate_scored", "frame_fixed"]
    assert isinstance(events[-1], FrameFixed)
    assert (events[-1].epoch, events[-1].search) == (1, tasks)
    assert island.state.frame != old
    assert isinstance(island.ask(), NeedChild)


def test_after_a_curriculum_a_seed_that_cannot_be_scored_leaves_the_floor():
    island, _ = after_round_0(strategy=PATIENT)
    island.begin_round([Curriculum(tasks=("s90", "s91"), epoch=1)])
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


def test_the_lineage_does_not_depend_on_how_islands_interleave():
    worlds = [World(rounds=12, strategy=PATIENT) for _ in range(2)]
    for seed, world in enumerate(worlds):
        world.run(seed=seed)
    for name in ("i1", "i2", "i3"):
        assert worlds[0].shard(name) == worlds[1].shard(name)


def test_a_record_cut_anywhere_goes_on_to_the_same_end():
    setup = setup_of(rounds=6, strategy=replace(PATIENT, mutation_tries=1))
    whole, events = Island.found(setup, "a", seed_refs()[0], SEARCH)
    drive(whole, events)
    for cut in range(2, len(events) + 1):
        kept = list(events[:cut])
        island = Island.restore(setup, kept)
        kept += island.settle()
        drive(island, kept)
        assert kept == events, f"cut after event {cut}"


def drive(island: Island, events: list) -> None:
    """Go on to the end; every third child is sent back for good."""
    while not isinstance(need := island.ask(), Closed):
        if isinstance(need, NeedScores):
            events += answer(island, need)
        elif isinstance(need, NeedChild):
            if need.round % 3 == 0:
                events += island.sent_back("broken")
            else:
                events += island.proposed(f"tree {need.candidate}", Change(title="x"), 3)
        else:
            events += island.begin_round()


def test_owed_events_come_with_the_next_tell_if_nobody_settles():
    _island, events = after_round_0()
    cut = next(i for i, e in enumerate(events) if isinstance(e, CandidateJudged))
    restored = Island.restore(setup_of(), events[:cut])
    need = restored.ask()
    assert isinstance(need, NeedScores)
    assert need.split == "validation"
    told = answer(restored, need)
    assert told == events[cut:]


def test_foreign_events_may_arrive_in_any_order_and_twice():
    world = World(strategy=PATIENT)
    world.run(until=lambda: world.population.topology["i2"].round >= 3)
    history = [e for e in world.shard("i2") if hasattr(e, "candidate")]
    island, _ = after_round_0()
    proposals = [e for e in history if isinstance(e, CandidateProposed)]
    island.learn(e for e in history if not isinstance(e, CandidateProposed))
    assert proposals[-1].candidate not in island.lineage
    island.learn(reversed(proposals))
    island.learn(proposals)
    island.learn(history)
    for proposal in proposals:
        theirs = world.population.lineage[proposal.candidate]
        assert island.lineage[proposal.candidate] == theirs


def test_an_island_without_anything_to_score_and_no_frame_says_so():
    setup = setup_of(seeds=())
    island, events = Island.found(setup, "a", seed_refs()[0], ())
    with pytest.raises(RecordError, match="nothing left to score"):
        island.ask()
    assert [e.kind for e in events] == ["island_founded", "candidate_proposed"]


def test_draws_do_not_depend_on_the_hash_seed():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from island_driver import World; w = World(rounds=3); w.run();"
        "import hashlib; print(hashlib.sha256(repr(w.shard('i1')).encode()).hexdigest())"
    )
    here = os.path.dirname(__file__)
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, here],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_scores_are_kept_on_record_with_their_missing_tasks():
    island, _ = founded()
    events = island.scored("i1.0", "search", {SEARCH[0]: outcome_of("seed1", SEARCH[0], 3)})
    assert isinstance(events[0], CandidateScored)
    assert events[0].missing == SEARCH[1:]
    assert VALIDATION[0] not in events[0].missing


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
