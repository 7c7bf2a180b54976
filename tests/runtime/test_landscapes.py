"""A sample of ``scripts/bench landscapes``: the rules and E on landscapes whose truth is known."""

from __future__ import annotations

import pytest
from landscape_runs import first_answer, truth_of

from milo.testing.craftsman import Craftsman
from milo.testing.landscape import genes_of
from milo.testing.stalls import DIAGNOSES, Kind, draw_world

SEEDS = range(3)


@pytest.mark.parametrize("kind", list(DIAGNOSES))
def test_the_rules_find_the_planted_stall_out(kind: Kind) -> None:
    answers = [first_answer(draw_world(kind, seed), seed) for seed in SEEDS]
    said = [answer.diagnosis for answer in answers if answer is not None]
    assert said.count(DIAGNOSES[kind]) >= 2, said


def test_the_orchestrator_brings_more_than_islands_alone_where_they_stall() -> None:
    worlds = [draw_world(Kind.MIXED, seed) for seed in SEEDS]
    with_it = [truth_of(world, "e", seed) for seed, world in enumerate(worlds)]
    without = [truth_of(world, "d", seed) for seed, world in enumerate(worlds)]
    assert sum(with_it) > sum(without)


def test_a_world_is_what_its_seed_makes_it_and_its_seeds_start_low() -> None:
    one, again = draw_world(Kind.MIXED, 5), draw_world(Kind.MIXED, 5)
    assert one.techniques == again.techniques
    assert [genes_of(seed) for seed in one.seeds] == [genes_of(seed) for seed in again.seeds]
    assert one.techniques != draw_world(Kind.MIXED, 6).techniques
    assert all(one.accuracy(seed) < 0.4 for seed in one.seeds)


def test_every_island_of_a_world_has_a_mutator_and_a_seed() -> None:
    for kind in Kind:
        world = draw_world(kind, 1)
        known = {Craftsman(world=world, name=name).name for name in world.reach}
        assert len(known) >= len(world.seeds) >= 1
        assert world.planted in ("", *(f"i{n + 1}" for n in range(len(world.seeds))))
