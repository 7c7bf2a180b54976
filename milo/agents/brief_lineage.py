"""The lineage as a tree: every edit with its diagnosis and what it did, rejected ones too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from milo.agents.brief_text import cut
from milo.core.evidence import Edge
from milo.core.fitness import Fitness

PATCH_CHARS = 1500
LEGEND = (
    "Every line is an edit of the candidate above it: verdict, what was changed, what it did to "
    "accuracy, tokens and seconds, and how many search tasks it solved newly (+) or lost (-). "
    "'*' marks the path from the seed to this round's parent."
)


def lineage_text(snapshot: Sequence[Edge], limit: int) -> str:
    """The tree in one line per edit, then the edits in words, most telling first.

    What doesn't fit: edits off the path lose their words before those on it, older ones first;
    the tree stands whole as long as its lines alone fit.
    """
    if not snapshot:
        return ""
    tree = cut("\n".join([LEGEND, "", *_tree(snapshot)]), limit)
    parts, left = [tree], limit - len(tree)
    for edge in sorted(snapshot, key=lambda e: (not e.on_path, -e.round, e.child)):
        text = edge_text(edge)
        if len(text) <= left:
            parts.append(text)
            left -= len(text)
    return "\n\n".join(parts)


def _tree(snapshot: Sequence[Edge]) -> list[str]:
    children: dict[str, list[Edge]] = {}
    for edge in snapshot:
        children.setdefault(edge.parent, []).append(edge)
    made = {edge.child for edge in snapshot}
    roots = dict.fromkeys(edge.parent for edge in snapshot if edge.parent not in made)
    lines: list[str] = []
    for root in roots:
        lines.append(root)
        _branch(root, children, 1, lines)
    return lines


def _branch(
    parent: str, children: Mapping[str, Sequence[Edge]], depth: int, lines: list[str]
) -> None:
    """Depth first without recursion: a lineage may be hundreds of edits deep."""
    stack = [(edge, depth) for edge in reversed(children.get(parent, ()))]
    while stack:
        edge, level = stack.pop()
        lines.append(f"{'  ' * min(level, 20)}{_line(edge)}")
        stack += [(child, level + 1) for child in reversed(children.get(edge.child, ()))]


def _line(edge: Edge) -> str:
    mark = "*" if edge.on_path else "-"
    flips = f" +{len(edge.flipped_up)}/-{len(edge.flipped_down)}" if edge.after else ""
    effect = f" [{_effect(edge.before, edge.after)}{flips}]" if edge.after else ""
    return (
        f"{mark} {edge.child} {edge.verdict or 'unjudged'}: {cut(edge.change.title, 100)}{effect}"
    )


def _effect(before: Fitness | None, after: Fitness | None) -> str:
    if after is None:
        return "not scored"
    if before is None:
        return f"accuracy {after.accuracy:.3f}"
    return (
        f"accuracy {before.accuracy:.3f} -> {after.accuracy:.3f}, "
        f"tokens {before.tokens:.0f} -> {after.tokens:.0f}, "
        f"seconds {before.latency_s:.1f} -> {after.latency_s:.1f}"
    )


def edge_text(edge: Edge) -> str:
    """One edge: what was tried, why, and what it did."""
    lines = [f"{edge.parent} -> {edge.child} (round {edge.round}, {edge.verdict or 'unjudged'})"]
    lines.append(f"Edit: {edge.change.title}")
    for name, text in (
        ("Diagnosis", edge.change.diagnosis),
        ("Evidence", ", ".join(edge.change.evidence)),
        ("Hypothesis", edge.change.hypothesis),
        ("Reason", edge.reason),
        ("Effect", _effect(edge.before, edge.after)),
        ("Now solved", ", ".join(edge.flipped_up)),
        ("Now failed", ", ".join(edge.flipped_down)),
        ("Patch", f"\n{cut(edge.patch, PATCH_CHARS)}" if edge.patch else ""),
    ):
        if text:
            lines.append(f"{name}: {text}")
    return "\n".join(lines)
