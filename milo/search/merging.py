"""Merging: two variants that solve different tasks become the parents of one child (DarwinX, §2.3).

The child is kept only if it covers the union of what they solve (`preserving`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from milo.core.lineage import Lineage
from milo.search.contract import eligible, solved

NO_PAIR: tuple[str, ...] = ()


def complementary_pair(
    members: Sequence[str], lineage: Lineage, tasks: Sequence[str], latest: str
) -> tuple[str, ...]:
    """The two parents of a merge, the one that solves more first; empty where none is due.

    Each solves something that the other doesn't, together they solve more than anybody does, and
    they were not merged before. The pair that covers most is chosen, ties to the older. After a
    merge (`latest` is the island's newest candidate) comes a mutation.
    """
    if latest and len(lineage[latest].parents) > 1:
        return NO_PAIR
    sets = {
        c: solved(lineage[c].evaluation("search"), tasks)
        for c in eligible(members, lineage, tasks)
        if lineage[c].harness
    }
    tried = {frozenset(node.parents) for node in lineage if len(node.parents) > 1}
    most = max((len(held) for held in sets.values()), default=0)
    best, covered = NO_PAIR, most
    for a, b in combinations(sets, 2):
        union = len(sets[a] | sets[b])
        if union > covered and frozenset((a, b)) not in tried:
            best, covered = (a, b), union
    return tuple(sorted(best, key=lambda c: -len(sets[c])))
