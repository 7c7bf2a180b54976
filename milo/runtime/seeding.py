"""The seeds of a run: that they start, and which of them the islands get."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from milo.core.errors import HarnessError, ModelError
from milo.core.fitness import Fitness, fitness_on
from milo.core.harness import Harness
from milo.core.task import Suite
from milo.runtime.parts import EvaluationRequest, Peers


@dataclass(frozen=True, kw_only=True, slots=True)
class Seed:
    """A seed harness and the name that reports call it by."""

    name: str
    harness: Harness


def start_name(number: int) -> str:
    """The candidate id of the seed with this number, from 1."""
    return f"i{number}.0"


async def smoke_seeds(peers: Peers, seeds: Sequence[Seed]) -> None:
    """Refuse a seed that can't start, before any attempt is paid for; raises `HarnessError`."""
    errors = await asyncio.gather(*(peers.dispatcher.smoke(seed.harness) for seed in seeds))
    for seed, error in zip(seeds, errors, strict=True):
        if error:
            raise HarnessError(f"seed {seed.name}", "a smoke test that passes", error)


async def order_by_fitness(peers: Peers, suite: Suite, seeds: Sequence[Seed]) -> tuple[Seed, ...]:
    """The best on the search split first (ties by tokens): where islands are fewer than seeds."""
    fitness = await asyncio.gather(*(_fitness(peers, suite, seed) for seed in seeds))
    order = sorted(range(len(seeds)), key=lambda i: (-fitness[i].accuracy, fitness[i].tokens))
    return tuple(seeds[i] for i in order)


async def recorded_order(peers: Peers, suite: Suite, seeds: Sequence[Seed]) -> tuple[Seed, ...]:
    """The order in which a run that has started numbered its seeds."""
    by_digest = {seed.harness.digest: seed for seed in seeds}
    names = [start_name(number) for number in range(1, len(seeds) + 1)]
    stored = [await peers.recorder.get_harness(name) for name in names]
    return tuple(by_digest[harness.digest] for harness in stored)


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
