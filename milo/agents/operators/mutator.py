"""The mutator that needs no model: diagnose, choose an operator, edit, smoke-test, explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from milo.agents.operators.catalogue import OPERATORS
from milo.agents.operators.choice import Candidate, candidates, number_of_edits, pick
from milo.agents.operators.composition import graft
from milo.agents.operators.operator import Emphasis, Operator
from milo.agents.operators.signs import Signs, read_signs
from milo.core.errors import MiloError
from milo.core.events import Change
from milo.core.evidence import Brief, Proposal
from milo.core.ports import Workshop
from milo.core.tree import FileTree

TRIES = 4
OTHER_FIRST = "Start from the other parent, which solves more"


class NothingToPropose(MiloError):
    """No operator applies to this parent, or none of the children passed its smoke test."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A child in the making and the operators that made it, in order."""

    tree: FileTree
    applied: tuple[Operator, ...]
    carried: tuple[str, ...] = ()


class OperatorMutator:
    """Rewrites a harness by operators; see `catalogue` for them and `choice` for the choice.

    `emphasis` multiplies the weight of one kind of operator. Stateless: may be shared.
    """

    def __init__(
        self,
        name: str = "operators",
        emphasis: Emphasis | None = None,
        operators: Sequence[Operator] = OPERATORS,
    ) -> None:
        self._name = name
        self._emphasis = emphasis
        self._operators = tuple(operators)

    @property
    def name(self) -> str:
        """As the pool names it."""
        return self._name

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """A child that passed its smoke test; raises `NothingToPropose` where none did."""
        rng = np.random.default_rng(brief.seed)
        asked, brief = brief, with_better_parent_first(brief)
        signs = read_signs(brief.parents[0])
        error = "no operator applies to this source and its evidence"
        for _ in range(TRIES):
            draft = self._draft(brief, signs, rng)
            if draft is None:
                break
            error = await workshop.smoke(draft.tree)
            if not error:
                change = account(draft, signs)
                if brief.parents[0] != asked.parents[0]:
                    change = replace(change, title=f"{OTHER_FIRST}; {change.title}")
                return Proposal(tree=draft.tree, change=change)
        raise NothingToPropose(f"mutator {self.name}: {error}")

    def _draft(self, brief: Brief, signs: Signs, rng: np.random.Generator) -> Draft | None:
        tree = brief.parents[0].harness.tree
        draft = Draft(tree=tree, applied=())
        if len(brief.parents) > 1:
            child, carried = graft(tree, brief.parents[1].harness.tree)
            draft = Draft(tree=child, applied=(), carried=carried)
            if carried and child.digest not in brief.forbidden_digests:
                return draft
        for _ in range(number_of_edits(signs, brief, rng)):
            step = self._step(draft, brief, signs, rng)
            if step is None:
                break
            draft = Draft(
                tree=step.child, applied=(*draft.applied, step.operator), carried=draft.carried
            )
        return draft if draft.applied else None

    def _step(
        self, draft: Draft, brief: Brief, signs: Signs, rng: np.random.Generator
    ) -> Candidate | None:
        found = candidates(draft.tree, signs, brief, self._operators, self._emphasis)
        used = {operator.name for operator in draft.applied}
        found = [candidate for candidate in found if candidate.operator.name not in used]
        return pick(found, rng) if found else None


def with_better_parent_first(brief: Brief) -> Brief:
    """A graft starts from the parent that solves more; of equals, from the island's own."""
    order = sorted(brief.parents, key=lambda view: -view.accuracy)
    return replace(brief, parents=tuple(order))


def account(draft: Draft, signs: Signs) -> Change:
    """The mutator's own words: title, diagnosis with figures, a hypothesis that can fail."""
    titles = [operator.title for operator in draft.applied]
    if draft.carried:
        titles.insert(0, f"Carry over from the other parent: {', '.join(draft.carried)}")
    evidence = tuple(
        dict.fromkeys(
            line for operator in draft.applied for line in signs.words(*operator.symptoms)
        )
    )
    total = signs.failing + signs.passing
    figures = f"{signs.failing} of {total} attempts fail, {signs.tokens:.0f} tokens an attempt"
    expected = [operator.hypothesis for operator in draft.applied]
    if draft.carried:
        expected.insert(0, "The child solves what either parent solves.")
    return Change(
        title="; ".join(titles),
        diagnosis="; ".join((figures, *evidence)) + ".",
        hypothesis=" ".join(expected)
        + f" Refuted unless accuracy exceeds {signs.accuracy:.2f}"
        + f" or tokens fall below {signs.tokens:.0f}.",
        evidence=evidence,
    )
