"""What must hold of a child before any attempt is paid (SPEC §4.2), except its smoke test."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from milo.core.errors import HarnessError
from milo.core.harness import Harness
from milo.core.tree import FileTree
from milo.search.generality import GeneralityIndex

SHOWN = 3


class Refusal(NamedTuple):
    """Why a child is sent back: in words for its mutator, and in full for the run's owner.

    Both are "" where it isn't. They differ where a task is named that mutators know nothing of.
    """

    reason: str = ""
    full: str = ""


def check_child(
    parents: Sequence[Harness],
    child: FileTree,
    index: GeneralityIndex,
    forbidden: Collection[str] = frozenset(),
) -> Refusal:
    """Whether the child may be smoke-tested, or why not.

    `forbidden` are digests of earlier candidates. A file taken over from a parent unchanged is
    no edit; any other changed path must be editable in the first parent.
    """
    reason = _unfit(parents, child, forbidden) or _edits(parents, child)
    return Refusal(reason, reason) if reason else _specifics(parents, child, index)


def _unfit(parents: Sequence[Harness], child: FileTree, forbidden: Collection[str]) -> str:
    for parent in parents:
        if child.digest == parent.digest:
            return "the child is identical to its parent: nothing was changed"
    if child.digest in forbidden:
        return "the child is identical to an earlier candidate"
    try:
        Harness.from_tree(child, "the child")
    except HarnessError as error:
        return str(error)
    return ""


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


def _specifics(parents: Sequence[Harness], child: FileTree, index: GeneralityIndex) -> Refusal:
    hits = index.scan([parent.tree for parent in parents], child)
    if not hits:
        return Refusal()
    more = f" and {len(hits) - SHOWN} more" if len(hits) > SHOWN else ""
    start, shown = "the child holds task-specific logic", hits[:SHOWN]
    return Refusal(
        reason=f"{start}: {'; '.join(hit.public for hit in shown)}{more}",
        full=f"{start}: {'; '.join(str(hit) for hit in shown)}{more}",
    )
