"""The lineage snapshot that a mutator is shown: what was tried, why, and what it did (SPEC §3.1).

The whole island is shown, compressed, and the path from the seed to the parent in full with its
patches. When that is too long, the least informative edges are summarised first and the oldest
of those before the others: first off the path (invalid, then unjudged, rejected, admitted), then
patches on the path. What is still too long is dropped in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from milo.core.events import Change, Verdict
from milo.core.evidence import Edge
from milo.core.fitness import Evaluation, Fitness
from milo.core.lineage import Lineage, Node
from milo.core.plan import MemoryKind

MAX_CHARS = 40_000
FLAT_BEST = 5
SUMMARY_CHARS = 120
NUMBERS_CHARS = 120
INFORMATIVE = (Verdict.INVALID, None, Verdict.REJECTED, Verdict.ADMITTED, Verdict.SEED)


def build_snapshot(
    lineage: Lineage,
    *,
    parent: str,
    island: str,
    tasks: Sequence[str],
    patches: Mapping[str, str],
    memory: MemoryKind = MemoryKind.LINEAGE,
    max_chars: int = MAX_CHARS,
) -> tuple[Edge, ...]:
    """Edges in order of proposal, about `max_chars` characters in all.

    `tasks` is the current search set, `patches` the patch of each child by id (those on the path
    to `parent` are shown). FLAT memory (ablations A and B) is a list of the best few members with
    their fitness: no rejected ones, no patches, no diagnoses.
    """
    path = lineage.path_from_seed(parent)
    nodes = [n for n in lineage if n.parents and (n.island == island or n.candidate in path)]
    if memory is MemoryKind.FLAT:
        return _flat(nodes, lineage, tasks)
    edges = [
        _edge(node, lineage, tasks, patches.get(node.candidate, "") if on_path else "", on_path)
        for node in nodes
        for on_path in (node.candidate in path,)
    ]
    return _fitted(edges, max_chars)


def length_of(edge: Edge) -> int:
    """Characters that an edge takes when it is written out, figures included."""
    change = edge.change
    words = (change.title, change.diagnosis, change.hypothesis, edge.reason, edge.patch)
    tasks = (*change.evidence, *edge.flipped_up, *edge.flipped_down)
    return NUMBERS_CHARS + sum(map(len, words)) + sum(len(task) + 2 for task in tasks)


def _edge(node: Node, lineage: Lineage, tasks: Sequence[str], patch: str, on_path: bool) -> Edge:
    before = lineage[node.parents[0]]
    up, down = _flips(before.evaluation("search"), node.evaluation("search"), tasks)
    return Edge(
        parent=before.candidate,
        child=node.candidate,
        round=node.round,
        change=node.change,
        verdict=node.verdict,
        reason=node.reason,
        before=before.fitness("search", tasks),
        after=node.fitness("search", tasks),
        flipped_up=up,
        flipped_down=down,
        patch=patch,
        on_path=on_path,
    )


def _flips(
    before: Evaluation, after: Evaluation, tasks: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tasks resolved in most attempts of one and not of the other."""
    shared = [task for task in tasks if task in before and task in after]
    was = {task: 2 * before[task].resolved > before[task].n for task in shared}
    now = {task: 2 * after[task].resolved > after[task].n for task in shared}
    return (
        tuple(task for task in shared if now[task] and not was[task]),
        tuple(task for task in shared if was[task] and not now[task]),
    )


def _flat(nodes: Sequence[Node], lineage: Lineage, tasks: Sequence[str]) -> tuple[Edge, ...]:
    def rank(node: Node) -> tuple[float, float]:
        fitness = node.fitness("search", tasks) or Fitness(-1.0, 0.0, 0.0)
        return (-fitness.accuracy, fitness.tokens)

    admitted = [node for node in nodes if node.verdict is Verdict.ADMITTED]
    best = sorted(admitted, key=rank)[:FLAT_BEST]
    edges = (_edge(node, lineage, tasks, "", False) for node in best)
    return tuple(replace(edge, change=Change(title=edge.change.title), reason="") for edge in edges)


def _fitted(edges: Sequence[Edge], max_chars: int) -> tuple[Edge, ...]:
    """Summarise, then drop, edge by edge until all fits."""
    shown: list[Edge | None] = list(edges)
    order = sorted(range(len(edges)), key=lambda i: _worth(edges[i], i))
    total = sum(map(length_of, edges))
    for step in (_summary, _nothing):
        for i in order:
            edge = shown[i]
            if total <= max_chars:
                break
            if edge is None:
                continue
            shown[i] = step(edge)
            kept = shown[i]
            total += (length_of(kept) if kept else 0) - length_of(edge)
    return tuple(edge for edge in shown if edge is not None)


def _worth(edge: Edge, age: int) -> tuple[bool, int, int]:
    return (edge.on_path, INFORMATIVE.index(edge.verdict), age)


def _summary(edge: Edge) -> Edge | None:
    title = edge.change.title[:SUMMARY_CHARS]
    return replace(
        edge,
        change=Change(title=title),
        reason=edge.reason[:SUMMARY_CHARS],
        flipped_up=(),
        flipped_down=(),
        patch="",
    )


def _nothing(edge: Edge) -> Edge | None:
    return None
