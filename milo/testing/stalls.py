"""Landscapes with planted stalls: the four diagnoses of SPEC §3.3, each with a known truth.

A harness is a set of techniques with levels; a task is solved with a chance that rises with the
level of the technique it wants. What keeps an island from its optimum is planted:

* **dry mutator**: each mutator knows some of the techniques; when it has none left it rewords, an
  edit that changes no behaviour. One of the pool knows nothing from the start.
* **exhausted lineage**: techniques come in groups and can be built on only where the seed holds
  their group; the mutators go on with real edits, none of which helps.
* **crowded-out niche**: a style that starts low and cheap and has the higher ceiling, which the
  island's own mutator can found and not build on, beside one that has climbed as high as it goes
  and whose best dominates its kin, while parents are drawn greedily.
* **plateau**: every island has what is easy; what is left are a few tasks that each harness
  solves now and then, and nobody finds how to do better.
* **healthy**: mutators that know everything, one thing after the other, and more to find than the
  budget lets them.
* **mixed**: the first four at once, on which strategies are compared.

Parameters are drawn from the ranges below by one seed. No model and no sandbox: whole runs take
a second, and the expected accuracy of a harness is known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from math import fsum

import numpy as np

from milo.core.attempt import Outcome, Status, Timings, Usage
from milo.core.evidence import Trace
from milo.core.harness import Harness
from milo.core.moves import Diagnosis
from milo.core.ports import AttemptJob, AttemptResult
from milo.core.task import Splits, Suite, Task
from milo.testing.landscape import genes_of, landscape_harness

TASKS_PER_TECHNIQUE = (3, 5)
"""Tasks of each split that want one technique."""
TECHNIQUES = (6, 9)
SLIP = (0.0, 0.01)
"""Chance that a harness fails what it can do, and solves what it can't."""
HIT = (0.5, 0.8)
"""Chance that a mutator which knows a technique adds it right."""
SURE_HIT = (0.92, 1.0)
"""The same where nothing is to stall."""
PLATEAU_BASE = (0.2, 0.3)
PLATEAU_LEVELS = 3
PLATEAU_HARD = (2, 3)
CHEAP = 0.5
GENE_TOKENS = 10
"""Output tokens that a gene costs."""
CLIMBED = 3
TAU = 0.25
NICHE_TAU = (0.03, 0.06)
NICHE_OWN = (5, 7)
NICHE_CLIMB = (4, 5)
ISLANDS = 3
STYLE = "style"
GROUP = "group "
FIRST = "the first thing"
SMALLEST = 2
LADDER = 14


class Kind(StrEnum):
    """What is planted."""

    DRY = "dry mutator"
    EXHAUSTED = "exhausted lineage"
    NICHE = "crowded-out niche"
    PLATEAU = "plateau"
    HEALTHY = "healthy"
    MIXED = "mixed"


DIAGNOSES = {
    Kind.DRY: Diagnosis.DRY_MUTATOR,
    Kind.EXHAUSTED: Diagnosis.EXHAUSTED_LINEAGE,
    Kind.NICHE: Diagnosis.CROWDED_OUT_NICHE,
    Kind.PLATEAU: Diagnosis.PLATEAU,
}
"""The right answer for the planted island of each kind that plants one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Technique:
    """Something that a harness can do. `group`: what a lineage must hold to build on it; `after`:
    what it must be able to do before; `styles`: where it works; at level `levels` its tasks are
    solved, at level 0 with chance `base`."""

    name: str
    group: str = ""
    after: str = ""
    styles: tuple[int, ...] = (0,)
    levels: int = 1
    base: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """One landscape: what can be known, who knows it, and where each island starts.

    `reach` gives the techniques that each mutator knows, in pool order; `planted` is the island
    whose stall is the planted one ("" where any will do). A lineage that can do `climbed` things
    is once written anew in the other style. Where nobody `rewords`, mutators that have nothing
    left to add go on with real edits. `tau` is the temperature of parent selection.
    """

    kind: Kind
    techniques: Mapping[str, Technique]
    reach: Mapping[str, tuple[str, ...]]
    seeds: tuple[Harness, ...]
    tasks_per: int
    slip: float
    hit: float
    k: int = 1
    planted: str = ""
    climbed: int = CLIMBED
    gene_tokens: int = GENE_TOKENS
    rewords: bool = True
    tau: float = TAU

    def chance(self, genes: Mapping[str, int], technique: str) -> float:
        """The chance that a harness with these genes solves a task that wants `technique`."""
        wanted = self.techniques[technique]
        level = genes.get(technique, 0) if genes.get(STYLE, 0) in wanted.styles else 0
        reached = wanted.base + (1 - wanted.base) * min(1.0, level / wanted.levels)
        return self.slip + (1 - 2 * self.slip) * reached

    def accuracy(self, harness: Harness) -> float:
        """The exact expected accuracy of a harness; every split is alike."""
        genes = genes_of(harness)
        return fsum(self.chance(genes, name) for name in self.techniques) / len(self.techniques)

    def suite(self) -> Suite:
        """Three splits of `tasks_per` tasks for each technique."""
        each = len(self.techniques) * self.tasks_per
        names = list(self.techniques)
        tasks = {
            f"t{number:03d}": Task(
                id=f"t{number:03d}",
                instruction=f"wants {names[number % len(names)]}",
                family=names[number % len(names)],
            )
            for number in range(3 * each)
        }
        ids = tuple(tasks)
        splits = Splits(search=ids[:each], validation=ids[each : 2 * each], test=ids[2 * each :])
        return Suite(name=f"landscape: {self.kind}", tasks=tasks, splits=splits, k=self.k)


def draw_world(kind: Kind, seed: int) -> World:
    """The world of one seed; the same for the same seed."""
    rng = np.random.default_rng([seed, list(Kind).index(kind)])
    makers = {
        Kind.DRY: _dry,
        Kind.EXHAUSTED: _exhausted,
        Kind.NICHE: _niche,
        Kind.PLATEAU: _plateau,
        Kind.HEALTHY: _healthy,
        Kind.MIXED: _mixed,
    }
    return makers[kind](rng)


@dataclass(frozen=True, kw_only=True)
class WorldRunner:
    """Implements `AttemptRunner`: outcomes drawn by the attempt's key from the world's chances."""

    world: World

    async def run(self, job: AttemptJob) -> AttemptResult:
        """One attempt, decided by its key alone."""
        genes = genes_of(job.harness)
        rng = np.random.default_rng([ord(c) for c in str(job.key)])
        solved = rng.random() < self.world.chance(genes, job.task.family)
        price = CHEAP if genes.get(STYLE, 0) else 1.0
        outcome = Outcome(
            key=job.key,
            status=Status.COMPLETED,
            reward=float(solved),
            resolved=bool(solved),
            usage=Usage(
                uncached_input=int(1000 * price),
                output=self.world.gene_tokens * len(genes),
                calls=1,
            ),
            timings=Timings(agent_s=10.0 * price),
        )
        return AttemptResult(outcome=outcome, trace=Trace(report="" if solved else "not solved"))

    async def smoke(self, harness: Harness) -> str:
        """Landscape harnesses always start."""
        return ""


def _between(rng: np.random.Generator, bounds: tuple[float, float]) -> float:
    return float(rng.uniform(*bounds))


def _count(rng: np.random.Generator, bounds: tuple[int, int]) -> int:
    return int(rng.integers(bounds[0], bounds[1] + 1))


def _named(n: int) -> list[str]:
    return [f"technique {number}" for number in range(n)]


def _shuffled(rng: np.random.Generator, names: Sequence[str]) -> list[str]:
    return [names[int(i)] for i in rng.permutation(len(names))]


def _world(
    kind: Kind,
    rng: np.random.Generator,
    techniques: list[Technique],
    reach: Mapping[str, tuple[str, ...]],
    seeds: tuple[Harness, ...],
    planted: str = "",
) -> World:
    return World(
        kind=kind,
        techniques={technique.name: technique for technique in techniques},
        reach=reach,
        seeds=seeds,
        tasks_per=_count(rng, TASKS_PER_TECHNIQUE),
        slip=_between(rng, SLIP),
        hit=_hit(kind, rng),
        k=4 if kind is Kind.PLATEAU else 1,
        planted=planted,
    )


def _hit(kind: Kind, rng: np.random.Generator) -> float:
    if kind is Kind.PLATEAU:
        return 0.0  # what is hard is out of everybody's reach
    return _between(rng, SURE_HIT if kind in (Kind.HEALTHY, Kind.NICHE) else HIT)


def _seed(number: int, genes: Mapping[str, int]) -> Harness:
    """A seed that can do the first thing; its number keeps those apart that can do the same."""
    return landscape_harness({f"seed {number}": 1, FIRST: 1, **genes}, f"s{number}")


def _same_seeds() -> tuple[Harness, ...]:
    return tuple(_seed(number, {}) for number in range(ISLANDS))


def _pool(*known: Sequence[str]) -> dict[str, tuple[str, ...]]:
    return {f"m{place + 1}": tuple(names) for place, names in enumerate(known)}


def _dry(rng: np.random.Generator) -> World:
    """Three mutators: two that know half each, and one that knows nothing."""
    names = _shuffled(rng, _named(_count(rng, TECHNIQUES)))
    half = len(names) // 2
    known: tuple[list[str], ...] = (names[:half], names[half:], [])
    order = [int(i) for i in rng.permutation(ISLANDS)]
    techniques = [Technique(name=name) for name in (FIRST, *names)]
    reach = _pool(*(known[which] for which in order))
    return _world(Kind.DRY, rng, techniques, reach, _same_seeds(), f"i{order.index(2) + 1}")


def _groups(rng: np.random.Generator, names: Sequence[str]) -> tuple[dict[str, str], list[int]]:
    """Each technique's group, the first the smallest, and the group that each seed holds."""
    cuts = [SMALLEST, SMALLEST + (len(names) - SMALLEST) // 2, len(names)]
    starts = [0, *cuts[:-1]]
    group = {
        name: f"{GROUP}{place}"
        for place, (start, end) in enumerate(zip(starts, cuts, strict=True))
        for name in names[start:end]
    }
    return group, [int(i) for i in rng.permutation(ISLANDS)]


def _exhausted(rng: np.random.Generator) -> World:
    """Each seed holds one group; the planted island's group is the smallest."""
    names = _shuffled(rng, _named(_count(rng, TECHNIQUES)))
    group, order = _groups(rng, names)
    techniques = [Technique(name=FIRST), *(Technique(name=n, group=group[n]) for n in names)]
    seeds = tuple(_seed(number, {f"{GROUP}{order[number]}": 1}) for number in range(ISLANDS))
    reach = _pool(*[[FIRST, *names]] * ISLANDS)
    return _world(Kind.EXHAUSTED, rng, techniques, reach, seeds, f"i{order.index(0) + 1}")


def _niche(rng: np.random.Generator) -> World:
    """One island. Its mutator and the next know the climbing style, the pool's last the niche's."""
    climb = [f"step {number}" for number in range(_count(rng, NICHE_CLIMB))]
    own = _named(_count(rng, NICHE_OWN))
    techniques = [Technique(name=FIRST, styles=(0, 1))]
    techniques += [Technique(name=name) for name in climb]
    techniques += [Technique(name=name, styles=(1,)) for name in own]
    world = _world(Kind.NICHE, rng, techniques, _pool(climb, climb, own), (_seed(0, {}),), "i1")
    tau = _between(rng, NICHE_TAU)
    return replace(world, climbed=len(climb), gene_tokens=0, rewords=False, tau=tau)


def _plateau(rng: np.random.Generator) -> World:
    """Most tasks are solved by all seeds; the rest now and then."""
    names = _named(_count(rng, TECHNIQUES))
    hard = _count(rng, PLATEAU_HARD)
    base = _between(rng, PLATEAU_BASE)
    techniques = [
        Technique(name=name, levels=PLATEAU_LEVELS, base=base if number < hard else 1.0)
        for number, name in enumerate(names)
    ]
    reach = _pool(*[[FIRST, *names]] * ISLANDS)
    return _world(Kind.PLATEAU, rng, [*techniques, Technique(name=FIRST)], reach, _same_seeds())


def _healthy(rng: np.random.Generator) -> World:
    """Nothing is planted: every mutator knows every technique, and there are many."""
    names = [FIRST, *_named(LADDER)]
    techniques = [Technique(name=FIRST)]
    techniques += [Technique(name=name, after=before) for before, name in pairwise(names)]
    reach = _pool(*[names] * ISLANDS)
    return _world(Kind.HEALTHY, rng, techniques, reach, _same_seeds())


def _mixed(rng: np.random.Generator) -> World:
    """Groups that only grafts join, mutators that know half or nothing, techniques that only the
    other style can use, and a few that take several levels."""
    names = _shuffled(rng, _named(_count(rng, TECHNIQUES)))
    group, order = _groups(rng, names)
    slow, late = names[-1], names[-2]
    techniques = [
        Technique(
            name=name,
            group=group[name],
            styles=(1,) if name == late else (0, 1),
            levels=PLATEAU_LEVELS if name == slow else 1,
            base=_between(rng, PLATEAU_BASE) if name == slow else 0.0,
        )
        for name in names
    ]
    known = _shuffled(rng, names)
    half = len(known) // 2
    seeds = tuple(_seed(number, {f"{GROUP}{order[number]}": 1}) for number in range(ISLANDS))
    knowers: tuple[list[str], ...] = (known[:half], known[half:], [])
    reach = _pool(*(knowers[int(i)] for i in rng.permutation(ISLANDS)))
    first = Technique(name=FIRST, styles=(0, 1))
    return _world(Kind.MIXED, rng, [first, *techniques], reach, seeds)
