"""Which islands there are to run: a ticket for each that is not closed."""

from __future__ import annotations

from collections.abc import Sequence

from milo.core.moves import Speciate
from milo.core.plan import RunPlan
from milo.core.task import Suite
from milo.core.topology import Topology
from milo.runtime.founding import Ticket
from milo.search.island import IslandSetup, SeedRef


def open_tickets(
    plan: RunPlan, suite: Suite, seeds: Sequence[SeedRef], topology: Topology
) -> list[Ticket]:
    """One ticket per island that isn't closed: founded before, from a seed, or speciated.

    `seeds` are in the order of their numbers; the first ones have islands.
    """
    setups = _Setups(plan, suite, tuple(seeds))
    tickets = [setups.from_seed(number) for number in range(min(plan.strategy.islands, len(seeds)))]
    known = {ticket.setup.island for ticket in tickets}
    for move in [m for _, _, m in topology.moves if isinstance(m, Speciate)]:
        if move.new_island not in known:
            setup = setups.of(move.new_island)
            tickets.append(Ticket(setup=setup, mutator=move.mutator, speciate=move))
            known.add(move.new_island)
    closed = {name for name, state in topology.islands.items() if state.closed}
    return [ticket for ticket in tickets if ticket.setup.island not in closed]


class _Setups:
    """What the islands of one run have in common."""

    def __init__(self, plan: RunPlan, suite: Suite, seeds: tuple[SeedRef, ...]) -> None:
        self._plan, self._suite, self._seeds = plan, suite, seeds

    def of(self, island: str) -> IslandSetup:
        """An island's setup."""
        return IslandSetup(
            island=island,
            strategy=self._plan.strategy,
            k=self._suite.k,
            validation=self._suite.splits.validation,
            seeds=self._seeds,
            run_seed=self._plan.seed,
            rounds=self._plan.budget.rounds,
        )

    def from_seed(self, number: int) -> Ticket:
        """The ticket of the island that starts from a seed, from 0."""
        pool = self._plan.agents.mutators
        return Ticket(
            setup=self.of(f"i{number + 1}"),
            mutator=pool[number % len(pool)],
            root=self._seeds[number],
            search=self._suite.splits.search,
        )
