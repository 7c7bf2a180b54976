"""Children of later rounds on a copy of the island, and their adoption when their round comes."""

from __future__ import annotations

import pytest
from island_driver import seed_refs
from test_island import PATIENT, answer, in_round_1

from milo.core.events import CandidateProposed, Change, MoveApplied, RoundEnded
from milo.core.moves import Graft
from milo.search.island import Island, NeedChild, NeedRound, NeedScores


def finished(island: Island) -> list:
    """Answer until the round is over and the next one has begun."""
    events = []
    while isinstance(need := island.ask(), NeedScores):
        events += answer(island, need)
    assert isinstance(island.ask(), NeedRound)
    return events + island.begin_round()


def made(island: Island, round_: int, harness: str) -> CandidateProposed:
    """A proposal for a round, made on the island as it stands."""
    (proposal,) = island.foresee(round_).proposed(harness, Change(title=harness))
    assert isinstance(proposal, CandidateProposed)
    return proposal


def test_a_later_child_is_asked_for_with_its_own_number_and_draws():
    island, _ = in_round_1(strategy=PATIENT)
    now, later = island.foresee(1).ask(), island.foresee(4).ask()
    assert now == island.ask()
    assert isinstance(now, NeedChild)
    assert isinstance(later, NeedChild)
    assert (later.round, later.candidate) == (4, "i1.4")
    assert later.seed != now.seed


def test_what_a_copy_decides_stays_in_it_until_it_is_adopted_in_its_round():
    island, _ = in_round_1(strategy=PATIENT)
    second = made(island, 2, "two")
    assert second.seen == 0
    assert "i1.2" not in island.lineage
    assert island.adopt([second]) == []
    first = island.adopt([made(island, 1, "one")])
    assert [event.candidate for event in first] == ["i1.1"]
    finished(island)
    adopted = island.adopt([second])
    assert adopted[0] == second
    assert island.lineage["i1.2"].parents == second.parents
    assert any(isinstance(event, RoundEnded) and event.round == 2 for event in finished(island))


def test_proposals_that_were_sent_back_are_taken_up_with_the_child_in_its_round():
    island, _ = in_round_1(strategy=PATIENT)
    twin = island.foresee(1)
    events = twin.sent_back("no parse")
    need = twin.ask()
    assert isinstance(need, NeedChild)
    assert (need.tries, need.error, need.round) == (1, "no parse", 1)
    events += twin.proposed("one", Change(title="one"))
    taken = island.adopt(events)
    assert taken[: len(events)] == events
    assert island.lineage["i1.1"].tries == 2
    assert island.lineage["i1.1"].sent_back == ("no parse",)


def test_a_child_equal_to_one_that_was_made_beside_it_is_invalid_in_its_turn():
    island, _ = in_round_1(strategy=PATIENT)
    first, second = made(island, 1, "same"), made(island, 2, "same")
    island.adopt([first])
    finished(island)
    judged = island.adopt([second])[1]
    assert "identical to the earlier candidate i1.1" in judged.reason


@pytest.mark.parametrize("ahead", [0, 3])
def test_a_graft_goes_to_the_child_conceived_at_its_boundary_and_to_no_other(ahead: int):
    island, _ = in_round_1(strategy=PATIENT)
    donor = seed_refs()[1]
    island.learn(
        [
            CandidateProposed(
                island="i2",
                candidate=donor.candidate,
                round=0,
                parents=(),
                harness=donor.harness,
                mutator="",
                change=Change(title="seed"),
            )
        ]
    )
    kept = [made(island, 1 + n, f"h{n}") for n in range(2 + ahead)]
    island.adopt([kept.pop(0)])
    while isinstance(need := island.ask(), NeedScores):
        answer(island, need)
    graft = Graft(donor="i2", island="i1", donor_candidate=donor.candidate)
    assert any(isinstance(event, MoveApplied) for event in island.begin_round([graft]))
    grafted = made(island, 2 + ahead, "grafted")
    assert grafted.parents[1] == donor.candidate
    if not ahead:
        return
    island.adopt([kept.pop(0)])
    finished(island)
    assert len(made(island, 3 + ahead, "plain").parents) == 1
