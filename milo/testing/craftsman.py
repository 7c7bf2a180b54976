"""The mutator of the landscapes: it adds techniques that it knows, and fails in a known way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milo.core.events import Change, Verdict
from milo.core.evidence import Brief, Proposal
from milo.core.ports import Workshop
from milo.testing.landscape import genes_of, landscape_harness
from milo.testing.stalls import STYLE, Technique, World

ANEW = "write it anew in the other style"
REWORDINGS = ("reword the prompt", "reword the greeting")


@dataclass(frozen=True, kw_only=True)
class Craftsman:
    """Implements `Mutator` over a world.

    It adds one technique that it knows and that the parent's lineage can build on, right with the
    world's chance; otherwise it reworks something to the worse. With nothing that it knows left to
    add it rewords (no behaviour changes), unless it knows everything or nobody rewords in this
    world: then it goes on reworking.
    A graft joins both parents. With `evidence` it sees what is solved already and adds no more to
    it. An edit that the snapshot shows rejected on the same parent is not repeated, so the memory
    that a strategy gives its mutators is worth what it shows.
    """

    world: World
    name: str
    evidence: bool = True

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """One edit of the first parent, or the union of two."""
        rng = np.random.default_rng(brief.seed)
        parents = [genes_of(parent.harness) for parent in brief.parents]
        if len(parents) > 1:
            joined = {gene: max(p.get(gene, 0) for p in parents) for p in parents for gene in p}
            return _proposal(joined | {STYLE: parents[0].get(STYLE, 0)}, "join both parents")
        return self._edit(parents[0], brief, rng)

    def _edit(self, genes: dict[str, int], brief: Brief, rng: np.random.Generator) -> Proposal:
        if self._may_switch(genes, brief):
            return _proposal(self._switched(genes), ANEW)
        options = self._options(genes, brief)
        knows_all = len(self.world.reach[self.name]) == len(self.world.techniques)
        if self.world.rewords and not options and not knows_all:
            title = REWORDINGS[int(rng.integers(len(REWORDINGS)))]
            return _proposal({**genes, title: genes.get(title, 0) + 1}, title)
        if options and rng.random() < self.world.hit:
            chosen = options[int(rng.integers(len(options)))]
            return self._added(genes, chosen, rng)
        return self._reworked(genes, rng)

    def _added(self, genes: dict[str, int], name: str, rng: np.random.Generator) -> Proposal:
        """One level more; there are many ways to climb one of several."""
        way = "" if self.world.techniques[name].levels == 1 else f" ({rng.integers(1_000_000)})"
        variant = {f"way{way}": 1} if way else {}
        return _proposal({**genes, name: genes.get(name, 0) + 1, **variant}, f"add {name}{way}")

    def _reworked(self, genes: dict[str, int], rng: np.random.Generator) -> Proposal:
        """An edit that does harm: it costs a technique, where there is one to lose."""
        number = int(rng.integers(1_000_000))
        owned = [gene for gene in genes if gene in self.world.techniques and genes[gene]]
        lost = {} if not owned else {owned[int(rng.integers(len(owned)))]: 0}
        title = f"rework {next(iter(lost), 'the loop')} ({number})"
        return _proposal({**genes, **lost, f"rework {number}": 1}, title)

    def _options(self, genes: dict[str, int], brief: Brief) -> list[str]:
        """What it could add: known, buildable here, not yet there, and not known to fail."""
        style = genes.get(STYLE, 0)
        rejected = {
            edge.change.title
            for edge in brief.snapshot
            if edge.parent == brief.parents[0].candidate and edge.verdict is Verdict.REJECTED
        }
        return [
            name
            for name in self.world.reach[self.name]
            for technique in (self.world.techniques[name],)
            if style in technique.styles and _buildable(technique, genes)
            if not (self.evidence and _is_solved(technique, genes))
            if not (technique.levels == 1 and f"add {name}" in rejected)
        ]

    def _may_switch(self, genes: dict[str, int], brief: Brief) -> bool:
        """Where there is another style, a lineage that has climbed is once written anew."""
        styled = any(1 in technique.styles for technique in self.world.techniques.values())
        climbed = sum(genes.get(name, 0) for name in self.world.techniques)
        tried = any(edge.change.title == ANEW for edge in brief.snapshot)
        return styled and not tried and not genes.get(STYLE, 0) and climbed >= self.world.climbed

    def _switched(self, genes: dict[str, int]) -> dict[str, int]:
        """What only the other style can use, as far as two techniques go; all else is lost."""
        own = [t.name for t in self.world.techniques.values() if t.styles == (1,)]
        kept = {gene: n for gene, n in genes.items() if gene not in self.world.techniques}
        return kept | {STYLE: 1} | dict.fromkeys(own[:2], 1)


def _buildable(technique: Technique, genes: dict[str, int]) -> bool:
    needed = (technique.group, technique.after)
    return all(genes.get(name, 0) for name in needed if name)


def _is_solved(technique: Technique, genes: dict[str, int]) -> bool:
    return technique.base == 1.0 or genes.get(technique.name, 0) >= technique.levels


def _proposal(genes: dict[str, int], title: str) -> Proposal:
    return Proposal(tree=landscape_harness(genes).tree, change=Change(title=title))
