"""Budget ledger, lineage, topology and population: the folds of events."""

from __future__ import annotations

import pytest

from milo.core.attempt import Usage
from milo.core.budget import Budget, Ledger, Spend
from milo.core.errors import BudgetExceeded, RecordError
from milo.core.events import (
    EVENT_TYPES,
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Change,
    Consulted,
    Event,
    FrameFixed,
    IslandClosed,
    IslandFounded,
    MoveApplied,
    MoveVoided,
    Record,
    RoundEnded,
    RunEnded,
    RunResumed,
    RunStarted,
    Verdict,
    WinnerFrozen,
)
from milo.core.fitness import TaskScore
from milo.core.hypervolume import Frame
from milo.core.lineage import Lineage
from milo.core.moves import Consultation, Curriculum, Diagnosis, Graft, Move, Reassign, Speciate
from milo.core.population import Population
from milo.core.topology import best_member, moved_members

FRAME = Frame(seed_accuracy=0.5, token_scale=1.0, latency_scale=1.0)


# --- the ledger -----------------------------------------------------------------------------------


def test_a_reservation_that_a_limit_refuses_spends_nothing():
    ledger = Ledger(Budget(attempts=10))
    ledger.reserve("a", Spend(attempts=6))
    with pytest.raises(BudgetExceeded, match="b needs 5 attempts, but only 4 of 10 are left"):
        ledger.reserve("b", Spend(attempts=5))
    assert ledger.committed == Spend(attempts=6)
    ledger.reserve("a", Spend(attempts=5))
    ledger.reserve("b", Spend(attempts=5))
    assert ledger.remaining() == {"attempts": 0, "tokens": None, "dollars": None}


@pytest.mark.parametrize("spend", [Spend(tokens=11), Spend(dollars=0.2)])
def test_tokens_and_dollars_bind_alike(spend):
    ledger = Ledger(Budget(tokens=10, dollars=0.1))
    with pytest.raises(BudgetExceeded):
        ledger.reserve("a", spend)


def test_drawing_shrinks_the_promise_and_settling_ends_it():
    ledger = Ledger(Budget(attempts=10))
    ledger.reserve("a", Spend(attempts=5))
    ledger.draw("a", "target", Spend(attempts=2, tokens=7))
    assert ledger.reserved["a"] == Spend(attempts=3)
    assert ledger.committed.attempts == 5
    ledger.settle("a", "mutator", Spend(tokens=1))
    ledger.draw("a", "target", Spend(attempts=1))
    ledger.settle("unknown", "orchestrator", Spend(dollars=1.0))
    assert ledger.total == Spend(attempts=3, tokens=8, dollars=1.0)
    assert ledger.reserved == {}


def test_a_resume_keeps_spending_and_drops_promises():
    ledger = Ledger(Budget(attempts=10))
    ledger.reserve("a", Spend(attempts=5))
    ledger.draw("a", "target", Spend(attempts=2))


def test_an_unknown_price_counts_no_dollars_but_its_tokens():
    spend = Spend.of(Usage(output=5, dollars=None), attempts=1)
    assert spend == Spend(attempts=1, tokens=5, dollars=0.0)


def test_a_budget_says_whether_anything_binds():
    assert not Budget().is_bounded
    assert Budget(hours=1.0).is_bounded


# --- building -------------------------------------------------------------------------------------


def founded(island: str = "i1", **changes: object) -> IslandFounded:
    fields = {"mutator": "a", "root": f"{island}.0", "search": ("s",)}
    return IslandFounded(island=island, **{**fields, **changes})  # type: ignore[arg-type]


def proposed(candidate: str, *parents: str, round_: int = 0) -> CandidateProposed:
    return CandidateProposed(
        island=candidate.split(".", maxsplit=1)[0],
        candidate=candidate,
        round=round_,
        parents=parents,
        harness=f"tree {candidate}",
        mutator="a",
        change=Change(title=candidate),
    )


def scored(candidate: str, reward: float, tokens: float = 1.0, task: str = "s") -> CandidateScored:
    score = TaskScore(n=1, reward=reward, resolved=int(reward), tokens=tokens, latency_s=1.0)
    island = candidate.split(".", maxsplit=1)[0]
    return CandidateScored(island=island, candidate=candidate, split="search", scores={task: score})


def judged(candidate: str, verdict: Verdict = Verdict.ADMITTED) -> CandidateJudged:
    island = candidate.split(".", maxsplit=1)[0]
    return CandidateJudged(island=island, candidate=candidate, round=0, verdict=verdict, reason="r")


def applied(move: Move, island: str = "i1", round_: int = 1) -> MoveApplied:
    return MoveApplied(island=island, round=round_, move=move)


def consulted(*moves: Move, island: str = "i1", round_: int = 0) -> Consulted:
    return Consulted(
        consultation=Consultation(
            island=island, round=round_, diagnosis=Diagnosis.HEALTHY, words="", moves=moves
        )
    )


def population(*events: Event) -> Population:
    return Population.of(
        Record(seq=i, time=0.0, shard="x", epoch=1, event=e) for i, e in enumerate(events)
    )


def two_islands(*more: Event) -> Population:
    events: list[Event] = []
    for name in ("i1", "i2"):
        events += [founded(name), proposed(f"{name}.0"), scored(f"{name}.0", 0.0)]
        events.append(judged(f"{name}.0", Verdict.SEED))
    return population(*events, *more)


CHILDREN = (
    proposed("i1.1", "i1.0"),
    scored("i1.1", 0.5),
    judged("i1.1"),
    proposed("i1.2", "i1.1"),
    scored("i1.2", 1.0),
    judged("i1.2"),
    proposed("i1.3", "i1.1"),
    judged("i1.3", Verdict.REJECTED),
)


# --- the lineage ----------------------------------------------------------------------------------


def test_the_lineage_knows_children_paths_and_subtrees():
    lineage = two_islands(*CHILDREN).lineage
    assert lineage.children("i1.1") == ("i1.2", "i1.3")
    assert lineage.children("i2.0") == ()
    assert lineage.path_from_seed("i1.2") == ("i1.0", "i1.1", "i1.2")
    assert lineage.subtree("i1.1") == ("i1.1", "i1.2", "i1.3")
    assert [n.candidate for n in lineage.of_island("i2")] == ["i2.0"]
    assert len(lineage) == 5
    assert "i1.3" in lineage


def test_later_scores_replace_those_of_the_same_tasks_only():
    lineage = two_islands(scored("i1.0", 1.0), scored("i1.0", 0.5, task="t")).lineage
    node = lineage["i1.0"]
    assert {t: s.reward for t, s in node.evaluation("search").items()} == {"s": 1.0, "t": 0.5}
    assert node.fitness("search", ("s", "t")).accuracy == 0.75
    assert node.fitness("search", ("s", "u")) is None
    assert node.fitness("search", ()) is None
    assert node.evaluation("test") == {}


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (proposed("i1.0"), "proposed twice"),
        (proposed("i1.9", "i1.8"), "unknown parent i1.8"),
        (scored("i1.9", 1.0), "never proposed"),
        (judged("i1.9"), "never proposed"),
        (judged("i1.0", Verdict.REJECTED), "can't become rejected"),
    ],
)
def test_a_record_that_contradicts_the_past_is_refused(event, reason):
    with pytest.raises(RecordError, match=reason):
        two_islands(event)


def test_an_equal_verdict_told_twice_is_harmless():
    twice = two_islands(*CHILDREN, judged("i1.1"))
    assert twice.topology["i1"].members == ("i1.0", "i1.1", "i1.2")


def test_the_lineage_ignores_events_without_candidates():
    lineage = Lineage()
    lineage.apply(founded())
    assert len(lineage) == 0


# --- the topology ---------------------------------------------------------------------------------


def test_an_island_is_founded_once_and_must_exist():
    with pytest.raises(RecordError, match="founded twice"):
        two_islands(founded("i1"))
    with pytest.raises(RecordError, match="never founded"):
        two_islands().topology["i9"]


def test_rounds_frames_and_closings_are_states():
    state = two_islands(
        FrameFixed(island="i1", epoch=0, search=("s",), frame=FRAME),
        RoundEnded(island="i1", round=3, stall=2, best_validation=0.5),
        IslandClosed(island="i1", round=3, reason="spent"),
    ).topology["i1"]
    assert (state.frame, state.round, state.stall, state.closed) == (FRAME, 3, 2, "spent")


def test_moves_change_what_they_name_and_reset_the_stall():
    stalled = RoundEnded(island="i1", round=3, stall=2, best_validation=0.5)
    reassigned = two_islands(stalled, applied(Reassign(island="i1", mutator="b"))).topology["i1"]
    assert (reassigned.mutator, reassigned.stall) == ("b", 0)
    new = two_islands(stalled, applied(Curriculum(tasks=("t",), epoch=1))).topology["i1"]
    assert (new.search, new.epoch, new.frame, new.stall) == (("t",), 1, None, 0)


def test_a_graft_is_used_up_by_the_child_that_it_made():
    """Rejected or not: the pair isn't grafted again."""
    graft = applied(Graft(island="i1", donor="i2", donor_candidate="i2.0"))
    assert two_islands(graft).topology["i1"].pending_graft == "i2.0"
    used = two_islands(graft, proposed("i1.1", "i1.0", "i2.0")).topology["i1"]
    assert used.pending_graft == ""


def test_speciate_takes_the_admitted_subtree_without_the_best():
    move = Speciate(island="i1", root="i1.1", mutator="a", new_island="i3")
    before = two_islands(*CHILDREN)
    assert best_member(before.topology["i1"], before.lineage) == "i1.2"
    assert moved_members(before.topology["i1"], "i1.1", before.lineage) == ("i1.1",)
    after = two_islands(*CHILDREN, applied(move))
    state = after.topology["i1"]
    assert (state.members, state.moved_out) == (("i1.0", "i1.2"), ("i1.1",))
    assert after.unfounded() == (move,)
    assert after.pending_moves("i3") == ()
    founded_now = two_islands(*CHILDREN, applied(move), founded("i3", source="i1"))
    assert founded_now.unfounded() == ()


def test_a_member_that_lacks_scores_ranks_below_every_scored_one():
    lineage = two_islands(proposed("i1.1", "i1.0"), judged("i1.1"))
    assert best_member(lineage.topology["i1"], lineage.lineage) == "i1.0"


# --- the population -------------------------------------------------------------------------------


def test_moves_are_pending_until_they_took_effect_on_each_island_they_touch():
    graft = Graft(island="i1", donor="i2", donor_candidate="i2.0")
    curriculum = Curriculum(tasks=("t",), epoch=1)
    state = two_islands(consulted(graft, curriculum), applied(graft))
    assert state.pending_moves("i1") == (curriculum,)
    assert state.pending_moves("i2") == (curriculum,)


def test_a_move_made_again_later_is_pending_again():
    """Mutator a, then b, then a, then b: the second 'b' must not be taken for the first."""
    to_b, to_a = Reassign(island="i1", mutator="b"), Reassign(island="i1", mutator="a")
    events = [consulted(to_b), applied(to_b), consulted(to_a), applied(to_a), consulted(to_b)]
    assert two_islands(*events).pending_moves("i1") == (to_b,)


def test_a_move_that_is_void_waits_no_longer_and_is_no_applied_one():
    speciate = Speciate(island="i1", root="i1.1", mutator="a", new_island="i3")
    void = MoveVoided(island="i1", round=2, move=speciate, reason="i1.1 is no member")
    state = two_islands(consulted(speciate), void)
    assert state.pending_moves("i1") == () and state.unfounded() == ()
    assert state.topology.voided == [("i1", 2, speciate)] and state.topology.moves == []


def test_a_speciated_island_waits_only_for_moves_after_its_founding():
    early, late = Curriculum(tasks=("t",), epoch=1), Curriculum(tasks=("u",), epoch=2)
    speciate = Speciate(island="i1", root="i1.1", mutator="a", new_island="i3")
    state = two_islands(consulted(early), consulted(speciate), consulted(late))
    assert state.pending_moves("i3") == (late,)


def test_answers_are_found_by_island_and_round():
    state = two_islands(consulted(round_=4))
    assert state.consultation("i1", 4) is not None
    assert state.consultation("i1", 5) is None


def test_history_holds_all_ancestors_in_order():
    state = two_islands(*CHILDREN, proposed("i2.1", "i2.0", "i1.2"))
    assert state.history_of(["i2.1"]) == ("i1.0", "i2.0", "i1.1", "i1.2", "i2.1")


def test_a_run_starts_resumes_and_ends():
    started = RunStarted(name="r", plan={}, search=("s",), validation=("v",), test=(), model="m")
    ended = RunEnded(reason="spent", searched=True)
    winner = WinnerFrozen(candidate="i1.0", island="i1", rule="one_se", front=("i1.0",))
    state = population(started, winner, ended, RunResumed())
    assert (state.started, state.winner, state.resumes) == (started, winner, 1)
    assert state.ended is None
    assert population(started, ended).ended == ended


def test_every_event_type_is_tagged_by_its_kind():
    assert all(EVENT_TYPES[kind].kind == kind for kind in EVENT_TYPES)
    assert len(EVENT_TYPES) == 15
