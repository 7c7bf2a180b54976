"""What a mutator is pointed to beside its parent: signals in words, and candidates to look into.

DarwinX's three signals (§2.4) point at evidence; Meta-Harness's proposer may read every earlier
candidate. Both are decided here, from the record alone; the runtime fetches what is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from milo.core.lineage import Lineage, Node
from milo.core.plan import MemoryKind, Signal, StrategyPlan
from milo.search.contract import is_solved, solved

SHOWN = 6
TEACHERS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Guidance:
    """Words for the mutator, and earlier candidates whose source and attempts it may read."""

    signals: str = ""
    library: tuple[str, ...] = ()


def guidance(
    strategy: StrategyPlan, lineage: Lineage, parents: Sequence[str], tasks: Sequence[str]
) -> Guidance:
    """What a strategy adds to the brief of a child of these parents; nothing by default."""
    if strategy.memory is MemoryKind.ARCHIVE:
        return _archive(lineage, parents)
    parent = lineage[parents[0]]
    lines: list[str] = []
    library: tuple[str, ...] = ()
    for signal in strategy.signals:
        words, teachers = SIGNALS[signal](lineage, parent, tasks)
        lines += [words] if words else []
        library = (*library, *(t for t in teachers if t not in parents))
    return Guidance(signals="\n".join(lines), library=library)


def _archive(lineage: Lineage, parents: Sequence[str]) -> Guidance:
    scored = [n.candidate for n in lineage if n.harness and n.evaluation("search")]
    others = tuple(c for c in scored if c not in parents)
    if not others:
        return Guidance()
    return Guidance(
        signals=f"The library holds all {len(others)} earlier candidates with source, scores and "
        "attempts. Read what was tried before you propose; you may build on any of them.",
        library=others,
    )


Found = tuple[str, tuple[str, ...]]


def _failure(lineage: Lineage, parent: Node, tasks: Sequence[str]) -> Found:
    """∇: what the parent fails at."""
    failed = _failed(parent, tasks)
    if not failed:
        return "", ()
    return (
        f"Failure-derived: it fails {_listed(failed)}. Name the missing capability and make "
        "one additive edit that supplies it; keep what works.",
        (),
    )


def _teacher(lineage: Lineage, parent: Node, tasks: Sequence[str]) -> Found:
    """π*: candidates that solve what the parent fails; those that solve most of it first."""
    failed = frozenset(_failed(parent, tasks))
    solving = {
        node.candidate: solved(node.evaluation("search"), tasks) & failed
        for node in lineage
        if node.harness and node.candidate != parent.candidate
    }
    ranked = sorted((c for c in solving if solving[c]), key=lambda c: -len(solving[c]))
    teachers = tuple(ranked[:TEACHERS])
    if not teachers:
        return "", ()
    lines = [f"{c} solves {_listed(sorted(solving[c]))}" for c in teachers]
    return (
        f"Teacher-derived: {'; '.join(lines)}, which it fails. Distil what they do there into an "
        "approach of general use.",
        teachers,
    )


def _self(lineage: Lineage, parent: Node, tasks: Sequence[str]) -> Found:
    """A: tasks that the parent both passes and fails."""
    scores = parent.evaluation("search")
    mixed = [t for t in tasks if t in scores and 0 < scores[t].resolved < scores[t].n]
    if not mixed:
        return "", ()
    return (
        f"Self-derived: it both passes and fails {_listed(mixed)}. Contrast the two, and make the "
        "passing way the rule.",
        (),
    )


SIGNALS: Mapping[Signal, Callable[[Lineage, Node, Sequence[str]], Found]] = {
    Signal.FAILURE: _failure,
    Signal.TEACHER: _teacher,
    Signal.SELF: _self,
}


def _failed(parent: Node, tasks: Sequence[str]) -> list[str]:
    scores = parent.evaluation("search")
    return [t for t in tasks if t in scores and not is_solved(scores[t])]


def _listed(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - SHOWN} more tasks" if len(tasks) > SHOWN else ""
    return f"{', '.join(tasks[:SHOWN])}{more}"
