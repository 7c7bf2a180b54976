"""The film's operations for what the pages' runs do not hold: void moves, raw objectives."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from milo.core.events import MoveVoided, ProposalSentBack
from milo.core.moves import Graft
from milo.core.objective import Objective
from milo.views.film import FilmFold, film_of


def operations(frames: Any, name: str) -> list[list[object]]:
    return [op for frame in frames for op in frame.operations if op[0] == name]


def test_a_void_move_is_told_with_its_reason(make_story: Any) -> None:
    story = make_story("moves")
    move = Graft(island="i1", donor="i2", donor_candidate="i2.1")
    story.add(MoveVoided(island="i1", round=4, move=move, reason="i2 was closed"))
    (told,) = operations(film_of(story.records), "void")
    assert told[1:3] == ["i1", 4] and told[4] == "i2 was closed"
    assert told[3] == {"kind": "graft", "island": "i1", "donor": "i2", "donor_candidate": "i2.1"}


def test_what_only_the_owner_may_read_of_a_refused_proposal_is_not_in_the_film(
    make_story: Any,
) -> None:
    """A page may be passed on; the full reason may name tasks that are held out."""
    story = make_story("moves")
    story.add(ProposalSentBack(island="i1", candidate="i1.3", round=3, reason="r", full="HELD-OUT"))
    assert "HELD-OUT" not in repr(film_of(story.records))


def test_objectives_are_told_where_a_candidate_is_scored(make_story: Any) -> None:
    asked: list[tuple[str, int]] = []

    def objectives(harness: str, tasks: Collection[str]) -> tuple[Objective, ...]:
        asked.append((harness, len(tasks)))
        return (Objective("p", 1.5, 2.0, 1.0),) if harness == "digest-i1.1" else ()

    fold = FilmFold()
    frames = [fold.apply(record, objectives) for record in make_story("moves").records]
    told = operations(frames, "objective")
    assert told and all(t[1:] == ["i1.1", [["p", 1.5, 2.0, 1.0]]] for t in told)
    scored = [frame for frame in frames if frame.kind == "candidate_scored"]
    assert len(asked) == len(scored)
