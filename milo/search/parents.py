"""Who the parents of an island's next child are: a graft's, two that complement, or a draw."""

from __future__ import annotations

from milo.core.ports import ParentSelection
from milo.core.topology import best_member
from milo.search.draws import Purpose, generator
from milo.search.merging import complementary_pair
from milo.search.record import IslandRecord


def choose_parents(
    record: IslandRecord, selection: ParentSelection, round_: int
) -> tuple[str, ...]:
    """One, or two for a graft (the island's own best first) or a merge."""
    state, lineage, setup = record.state, record.lineage, record.setup
    donor = record.pending_graft()
    if donor:
        return (best_member(state, lineage), donor)
    members = record.scored_members() or state.members
    if setup.strategy.merge:
        pair = complementary_pair(members, lineage, state.search, record.latest())
        if pair:
            return pair
    rng = generator(setup, round_, Purpose.SELECTION)
    return (selection.choose(members, lineage, state.search, rng),)
