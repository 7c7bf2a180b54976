"""What must hold of a child before any attempt is paid (SPEC §4.2), except its smoke test."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from milo.core.errors import HarnessError
from milo.core.harness import Harness
from milo.core.tree import FileTree
from milo.search.generality import GeneralityIndex

SHOWN = 3


def check_child(
    parents: Sequence[Harness],
    child: FileTree,
    index: GeneralityIndex,
    forbidden: Collection[str] = frozenset(),
) -> str:
    """ "" if the child may be smoke-tested, else the reason in words for its mutator.

    `forbidden` are digests of earlier candidates. A file taken over from a parent unchanged is
    no edit; any other changed path must be editable in the first parent.
    """
    for parent in parents:
        if child.digest == parent.digest:
            return "the child is identical to its parent: nothing was changed"
    if child.digest in forbidden:
        return "the child is identical to an earlier candidate"
    try:
        Harness.from_tree(child, "the child")
    except HarnessError as error:
        return str(error)
    return _edits(parents, child) or _specifics(parents, child, index)


def _edits(parents: Sequence[Harness], child: FileTree) -> str:
    locked = [
        path
        for path in parents[0].forbidden_edits(child)
        if not any(child.get(path) == other.tree.get(path) for other in parents[1:])
    ]
    if not locked:
        return ""
    return (
        f"the child changed {', '.join(locked[:SHOWN])}, but the manifest allows edits of "
        f"{', '.join(parents[0].manifest.editable)} only"
    )


def _specifics(parents: Sequence[Harness], child: FileTree, index: GeneralityIndex) -> str:
    hits = index.scan([parent.tree for parent in parents], child)
    if not hits:
        return ""
    more = f" and {len(hits) - SHOWN} more" if len(hits) > SHOWN else ""
    shown = "; ".join(str(hit) for hit in hits[:SHOWN])
    return f"the child holds task-specific logic: {shown}{more}"
