"""An island as a fold of its records: the same whoever else runs, and wherever it is cut."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from island_driver import (
    PATIENT,
    SEARCH,
    VALIDATION,
    World,
    after_round_0,
    answer,
    founded,
    outcome_of,
    seed_refs,
    setup_of,
)

from milo.core.errors import RecordError
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Change,
)
from milo.search.island import (
    Closed,
    Island,
    NeedChild,
    NeedScores,
)


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
