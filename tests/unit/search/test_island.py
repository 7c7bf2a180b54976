"""The island driven in memory, without Ray, files or a model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from island_driver import (
    PATIENT,
    SEARCH,
    after_round_0,
    answer,
    founded,
    in_round_1,
    outcome_of,
    seed_refs,
    setup_of,
)

from milo.core.attempt import Usage
from milo.core.events import (
    CandidateJudged,
    Change,
    IslandClosed,
    ProposalSentBack,
    RoundEnded,
    Verdict,
)
from milo.core.moves import Reassign
from milo.core.plan import SelectionKind, SelectionPlan, StrategyPlan
from milo.search.island import (
    Closed,
    Island,
    NeedChild,
    NeedConsultation,
    NeedRound,
    NeedScores,
)


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
