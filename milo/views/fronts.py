"""Hypervolume as the journal tells it: of each island in its own frame, and of all together.

Fronts are kept up to date member by member, since a run has thousands of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from milo.core.fitness import Fitness
from milo.core.hypervolume import Frame, hypervolume
from milo.core.population import Population
from milo.core.topology import IslandState


class _Front:
    """A Pareto front in a fixed frame, and its hypervolume."""

    def __init__(self, frame: Frame, fitness: Iterable[Fitness] = ()) -> None:
        self._frame = frame
        self._front: list[Fitness] = []
        self._volume: float | None = None
        for one in fitness:
            self.add(one)

    def add(self, one: Fitness) -> None:
        """Take a member in, if it is on the front."""
        if any(other == one or other.dominates(one) for other in self._front):
            return
        self._front = [other for other in self._front if not one.dominates(other)]
        self._front.append(one)
        self._volume = None

    @property
    def volume(self) -> float:
        """The hypervolume of the front."""
        if self._volume is None:
            self._volume = hypervolume(self._frame.points(self._front), self._frame.reference)
        return self._volume


class Fronts:
    """The fronts of a population that is folded elsewhere; told what changed. One owner.

    The whole population is measured in the frame and on the search set of its first island.
    """

    def __init__(self, population: Population) -> None:
        self._population = population
        self._islands: dict[str, _Front] = {}
        self._whole: _Front | None = None
        self._scale: tuple[Frame, Sequence[str]] | None = None

    def joined(self, island: str, candidate: str) -> None:
        """A candidate became a member."""
        state = self._population.topology[island]
        if island in self._islands:
            self._add(self._islands[island], candidate, state.search)
        if self._whole is not None and self._scale is not None:
            self._add(self._whole, candidate, self._scale[1])

    def changed(self, island: str) -> None:
        """An island's members, search set or frame are others now."""
        states = self._population.topology.islands
        state = states[island]
        self._islands.pop(island, None)
        if state.frame is not None:
            fitness = self._fitness(state.members, state.search)
            self._islands[island] = _Front(state.frame, fitness)
        first = next(iter(states.values()))
        if first.frame is not None and self._scale != (first.frame, first.search):
            self._scale = (first.frame, first.search)
            self._whole = _Front(first.frame, self._everybody(states.values(), first.search))

    def of(self, island: str) -> float | None:
        """An island's hypervolume; None before its frame is fixed."""
        front = self._islands.get(island)
        return front.volume if front is not None else None

    @property
    def whole(self) -> float | None:
        """The hypervolume of all members together."""
        return self._whole.volume if self._whole is not None else None

    def _everybody(self, states: Iterable[IslandState], tasks: Sequence[str]) -> Iterable[Fitness]:
        for state in states:
            yield from self._fitness(state.members, tasks)

    def _fitness(self, members: Iterable[str], tasks: Sequence[str]) -> Iterable[Fitness]:
        lineage = self._population.lineage
        for member in members:
            fitness = lineage[member].fitness("search", tasks) if member in lineage else None
            if fitness is not None:
                yield fitness

    def _add(self, front: _Front, candidate: str, tasks: Sequence[str]) -> None:
        for fitness in self._fitness((candidate,), tasks):
            front.add(fitness)
