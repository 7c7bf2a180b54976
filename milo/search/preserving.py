"""Admission by preserve-and-extend, with a probe before a promotion (DarwinX, §2.1 and §2.3).

A mutation is promoted if g > 0 and R ≤ δ against its parent; a merge if it solves all that any of
its parents solves. Before that the tasks at stake, those that the parents solve, are measured
again at higher fidelity: on the parents first (their solved sets were chosen by luck too, and
shrink to what holds), then on the child. The verdict is by the scores after the probe.
"""

from __future__ import annotations

from collections.abc import Sequence

from milo.core.lineage import Node
from milo.core.plan import AdmissionKind, StrategyPlan
from milo.core.ports import Decision
from milo.search.contract import assess, base_parent, is_solved, solved, uncovered
from milo.search.needs import NeedScores
from milo.search.record import IslandRecord

SHOWN = 3


def probes(strategy: StrategyPlan) -> bool:
    """Whether a promotion waits for a probe."""
    return strategy.admission.kind is AdmissionKind.PRESERVE and strategy.admission.probe > 0


def probe_attempts(strategy: StrategyPlan, search: int, k: int) -> int:
    """Attempts that the probe of one child may cost at most, its parents' included."""
    if not probes(strategy):
        return 0
    harnesses = 3 if strategy.merge else 2
    return harnesses * search * k * strategy.admission.probe


def next_probe(record: IslandRecord, node: Node) -> NeedScores | None:
    """What is to be measured again before the verdict on a scored child; None where nothing is.

    Nothing is probed for a child that fails already.
    """
    strategy = record.setup.strategy
    if not probes(strategy) or not node.parents or not decide(record, node).admitted:
        return None
    k = record.setup.k * (1 + strategy.admission.probe)
    tasks = record.state.search
    at_stake: frozenset[str] = frozenset()
    for parent in dict.fromkeys(node.parents):
        held = solved(record.lineage[parent].evaluation("search"), tasks)
        need = _again(record, parent, [t for t in tasks if t in held], k)
        if need is not None:
            return need
        at_stake |= held
    return _again(record, node.candidate, [t for t in tasks if t in at_stake], k)


def _again(record: IslandRecord, candidate: str, tasks: Sequence[str], k: int) -> NeedScores | None:
    """`k` attempts on those tasks that have fewer and were not measured again before."""
    node = record.lineage[candidate]
    scores = node.evaluation("search")
    thin = tuple(t for t in tasks if scores[t].n < k and not record.was_rescored(candidate, t))
    if not thin or record.is_given_up(candidate, "search"):
        return None
    return NeedScores(candidate=candidate, harness=node.harness, split="search", tasks=thin, k=k)


def decide(record: IslandRecord, node: Node) -> Decision:
    """Promote the child or not, by the scores as they stand."""
    tasks, lineage = record.state.search, record.lineage
    mine = node.evaluation("search")
    parent = base_parent(node, lineage, tasks)
    found = assess(mine, lineage[parent].evaluation("search"), tasks)
    if len(node.parents) > 1:
        others = [lineage[p].evaluation("search") for p in node.parents]
        lost = uncovered(mine, others, tasks)
        reason = _union_words(lost, node.parents)
        return Decision(admitted=not lost, reason=reason, gain=found.gain)
    delta = record.setup.strategy.admission.delta
    kept = found.holds(delta)
    words = (
        f"{found.kind} of {parent}: net gain {found.gain:+.2f} tasks, regression "
        f"{found.regression:.2f} of {delta:g} allowed"
    )
    held = _probe_words(record, node, parent)
    reason = f"{words}; {held}" if kept and held else words
    return Decision(admitted=kept, reason=reason, gain=found.gain)


def _union_words(lost: Sequence[str], parents: Sequence[str]) -> str:
    names = " and ".join(parents)
    if not lost:
        return f"merge of {names}: solves all that either solves"
    more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
    return f"merge of {names}: lost {', '.join(lost[:SHOWN])}{more}"


def _probe_words(record: IslandRecord, node: Node, parent: str) -> str:
    """What the probe has seen so far, or ""."""
    before = record.lineage[parent].evaluation("search")
    scores = node.evaluation("search")
    again = [
        t
        for t in record.state.search
        if t in before and is_solved(before[t]) and record.was_rescored(node.candidate, t)
    ]
    if not again:
        return ""
    held = sum(is_solved(scores[t]) for t in again)
    return f"the probe saw {held} of {len(again)} solved tasks hold"
