"""Parent selection by lineage gain: exploit the confirmed, else broaden (DarwinX, §2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from milo.core.lineage import Lineage
from milo.search.contract import eligible, lineage_gain


@dataclass(frozen=True, kw_only=True, slots=True)
class GainSelection:
    """p* ~ (1 − β) δ(argmax G over the confirmed set S) + β Broaden(P).

    S is the island's admitted set. Broaden draws evenly from P, which also holds children that
    were not promoted but preserve what their parent solves.
    """

    beta: float = 0.2

    def choose(
        self,
        members: Sequence[str],
        lineage: Lineage,
        tasks: Sequence[str],
        rng: np.random.Generator,
    ) -> str:
        """A member, or with chance β any that preserves; ties in gain go to fewer tokens."""
        broaden, place = rng.random(2)
        if broaden < self.beta:
            population = eligible(members, lineage, tasks)
            return population[int(place * len(population))]

        def rank(member: str) -> tuple[float, float]:
            fitness = lineage[member].fitness("search", tasks)
            tokens = fitness.tokens if fitness else np.inf
            return (-lineage_gain(member, lineage, tasks), tokens)

        return min(members, key=rank)
