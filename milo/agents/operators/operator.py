"""What an operator is: a diagnosis condition, an edit, and the account that it gives of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from milo.agents.operators.signs import Signs, Symptom
from milo.agents.operators.surgery import CannotEdit
from milo.core.errors import HarnessError
from milo.core.tree import FileTree

Edit = Callable[[FileTree], FileTree]


class Emphasis(StrEnum):
    """What kind of change an operator makes; pool variants prefer one kind."""

    CONTROL = "context"
    PROMPT = "prompt"
    FRUGAL = "frugal"


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """One general way to make a harness better.

    `symptoms` are the diagnosis condition: the operator addresses the failing attempts that show
    one of them. `weight` is the expected effect where it applies, relative to the others;
    `floor` the share that is assumed where no symptom was seen (0: it then does not apply).
    `edit` raises `CannotEdit`, or returns the tree as it was, where there is nothing to edit.
    """

    name: str
    title: str
    emphasis: Emphasis
    weight: float
    symptoms: tuple[Symptom, ...]
    hypothesis: str
    edit: Edit
    floor: float = 0.0
    condition: Callable[[Signs], bool] = lambda signs: True

    def relevance(self, signs: Signs) -> float:
        """How much of the failure evidence the operator addresses, in [0, 1]; 0 for none."""
        if not self.condition(signs):
            return 0.0
        return max(self.floor, signs.share(*self.symptoms))

    def child(self, tree: FileTree) -> FileTree | None:
        """The edited tree, or None where the operator does not apply to this source."""
        try:
            child = self.edit(tree)
        except (CannotEdit, HarnessError, SyntaxError):
            return None
        return None if child == tree else child


def chained(*edits: Edit) -> Edit:
    """One edit after the other; all must be possible."""

    def edit(tree: FileTree) -> FileTree:
        for step in edits:
            tree = step(tree)
        return tree

    return edit


def lenient(*edits: Edit) -> Edit:
    """One edit after the other, leaving out those that are not possible."""

    def edit(tree: FileTree) -> FileTree:
        for step in edits:
            try:
                tree = step(tree)
            except CannotEdit:
                continue
        return tree

    return edit
