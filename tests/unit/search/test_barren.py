"""An island that only makes invalid children costs no attempt, and ends all the same."""

from __future__ import annotations

from island_driver import SEARCH, VALIDATION, outcome_of, seed_refs

from milo.core.events import Change, IslandClosed
from milo.core.plan import StrategyPlan
from milo.search.deciding import BARREN
from milo.search.island import Closed, Island, IslandSetup, NeedRound, NeedScores


def scored_island() -> Island:
    refs = seed_refs(1)
    setup = IslandSetup(
        island="i1",
        run_seed=1,
        strategy=StrategyPlan(mutation_tries=1, orchestrator=False),
        k=3,
        seeds=refs,
        validation=VALIDATION,
    )
    island, _ = Island.found(setup, "m", refs[0], SEARCH)
    while isinstance(need := island.ask(), NeedScores):
        scores = {task: outcome_of("seed1", task, need.k) for task in need.tasks}
        island.scored(need.candidate, need.split, scores)
    return island


def test_an_island_whose_children_are_all_invalid_is_closed_in_the_end():
    island = scored_island()
    for _ in range(BARREN):
        assert isinstance(island.ask(), NeedRound)
        island.begin_round()
        events = island.sent_back("not a harness")
    closed = events[-1]
    assert isinstance(closed, IslandClosed)
    assert closed.reason == f"none of its last {BARREN} children was valid"
    assert isinstance(island.ask(), Closed)


def test_one_valid_child_lets_it_go_on():
    island = scored_island()
    for number in range(BARREN + 5):
        assert isinstance(island.ask(), NeedRound)
        island.begin_round()
        if number == BARREN - 2:
            island.proposed("tree", Change(title="x"))
            while isinstance(need := island.ask(), NeedScores):
                scores = {task: outcome_of("tree", task, need.k) for task in need.tasks}
                island.scored(need.candidate, need.split, scores)
        else:
            island.sent_back("not a harness")
    assert isinstance(island.ask(), NeedRound)
