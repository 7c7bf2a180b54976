"""The seeds of a run: that they start, and which of them the islands get."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from milo.core.errors import HarnessError, ModelError, ReplayMiss
from milo.core.events import CandidateProposed, Change
from milo.core.fitness import Fitness, fitness_on
from milo.core.harness import Harness
from milo.core.lineage import Lineage
from milo.core.task import Suite
from milo.runtime.parts import LIMIT, EvaluationRequest, Peers, SearchStopped
from milo.search.island import SeedRef


@dataclass(frozen=True, kw_only=True, slots=True)
class Seed:
    """A seed harness and the name that reports call it by."""

    name: str
    harness: Harness


def start_name(number: int) -> str:
    """The candidate id of the seed with this number, from 1."""
    return f"i{number}.0"


def given_name(number: int) -> str:
    """Under which the seed given as this one, from 1, is kept until it has a candidate's id."""
    return f"seed.{number}"


def are_numbered(lineage: Lineage, islands: int, seeds: int) -> bool:
    """Whether it is settled which seed is which candidate: at once where each has its island."""
    return all(start_name(number) in lineage for number in range(islands + 1, seeds + 1))


def references(seeds: Sequence[Seed]) -> tuple[SeedRef, ...]:
    """The seeds as islands know them, by their numbers."""
    return tuple(
        SeedRef(candidate=start_name(number), harness=seed.harness.digest)
        for number, seed in enumerate(seeds, start=1)
    )


def foreign_seeds(seeds: Sequence[Seed], islands: int) -> list[CandidateProposed]:
    """Seeds that found no island of their own still stand in the lineage."""
    return [
        CandidateProposed(
            island=f"i{number}",
            candidate=reference.candidate,
            round=0,
            parents=(),
            harness=reference.harness,
            mutator="",
            change=Change(title=f"seed {seed.name}"),
        )
        for number, (reference, seed) in enumerate(zip(references(seeds), seeds, strict=True), 1)
        if number > islands
    ]


async def smoke_seeds(peers: Peers, seeds: Sequence[Seed]) -> None:
    """Refuse a seed that can't start, before any attempt is paid for; raises `HarnessError`."""
    errors = await asyncio.gather(*(peers.dispatcher.smoke(seed.harness) for seed in seeds))
    for seed, error in zip(seeds, errors, strict=True):
        if error:
            raise HarnessError(f"seed {seed.name}", "a smoke test that passes", error)


async def order_by_fitness(peers: Peers, suite: Suite, seeds: Sequence[Seed]) -> tuple[Seed, ...]:
    """The best on the search split first (ties by tokens): where islands are fewer than seeds.

    As they were given where a spent limit cuts that, or a recording shows that one did.
    """
    try:
        fitness = await asyncio.gather(*(_fitness(peers, suite, seed) for seed in seeds))
    except SearchStopped as stop:
        if not stop.reason.startswith(LIMIT):
            raise
        return tuple(seeds)
    except ReplayMiss:
        return tuple(seeds)
    order = sorted(range(len(seeds)), key=lambda i: (-fitness[i].accuracy, fitness[i].tokens))
    return tuple(seeds[i] for i in order)


async def _fitness(peers: Peers, suite: Suite, seed: Seed) -> Fitness:
    tasks = suite.splits.search
    request = EvaluationRequest(
        island="run",
        candidate=seed.name,
        harness=seed.harness,
        split="search",
        tasks=tasks,
        k=suite.k,
    )
    result = await peers.dispatcher.evaluate(request)
    if result.missing:
        raise ModelError(f"seed {seed.name} has no valid attempt on {result.missing[0]}")
    return fitness_on(result.scores, tasks)
