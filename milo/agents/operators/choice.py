"""Which operators a child gets: a seeded random choice among what the evidence asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from milo.agents.operators.operator import Emphasis, Operator
from milo.agents.operators.signs import OF_THE_HARNESS, Signs
from milo.core.events import Verdict
from milo.core.evidence import Brief, Edge
from milo.core.tree import FileTree

REJECTED_HERE = 0.1
REJECTED_ELSEWHERE = 0.6
ADMITTED_ELSEWHERE = 1.5
PREFERRED = 3.0
FAULT_FIRST = 6.0
"""How much more an operator weighs that mends a fault of the harness's own: whatever else is tried
runs into that fault again."""
BOLD_BELOW = 0.8
BOLDNESS = 0.9
SHARPNESS = 1.5
REWRITE_BELOW = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An operator that applies, the child it makes, and its weight in the choice."""

    operator: Operator
    child: FileTree
    weight: float


def candidates(
    tree: FileTree,
    signs: Signs,
    brief: Brief,
    operators: Sequence[Operator],
    emphasis: Emphasis | None,
) -> list[Candidate]:
    """The operators that the evidence asks for and the source allows, with their weights."""
    found = []
    for operator in operators:
        relevance = operator.relevance(signs)
        child = operator.child(tree) if relevance > 0 else None
        if child is None or child.digest in brief.forbidden_digests:
            continue
        weight = (operator.weight * relevance) ** SHARPNESS * history_factor(operator, brief)
        faults = [symptom for symptom in operator.symptoms if symptom in OF_THE_HARNESS]
        weight *= 1.0 + (FAULT_FIRST - 1.0) * signs.share(*faults)
        if emphasis is not None and operator.emphasis is emphasis:
            weight *= PREFERRED
        found.append(Candidate(operator=operator, child=child, weight=weight))
    return found


def pick(found: Sequence[Candidate], rng: np.random.Generator) -> Candidate:
    """One of the candidates, by weight."""
    weights = np.array([candidate.weight for candidate in found])
    return found[int(rng.choice(len(found), p=weights / weights.sum()))]


def history_factor(operator: Operator, brief: Brief) -> float:
    """How the lineage changes an operator's weight: refuted here, refuted or proven elsewhere."""
    factor = 1.0
    here = brief.parents[0].candidate
    for edge in brief.snapshot:
        if operator.title in edge.change.title:
            factor *= _edge_factor(edge, edge.parent == here, edge.change.title == operator.title)
    return factor


def _edge_factor(edge: Edge, here: bool, alone: bool) -> float:
    if edge.verdict in (Verdict.REJECTED, Verdict.INVALID):
        factor = REJECTED_HERE if here else REJECTED_ELSEWHERE
        return factor if alone else factor**0.5
    return ADMITTED_ELSEWHERE if edge.verdict is Verdict.ADMITTED and not here else 1.0


def number_of_edits(signs: Signs, brief: Brief, rng: np.random.Generator) -> int:
    """One edit for a good parent, so that evolution can tell what helped; often a second where
    most attempts fail, and up to three where edits of this parent were rejected before.

    A parent that fails nearly everywhere gets two to four at once: what it lacks works only
    together (a program to act with needs the files shown, and its reply read right).
    """
    if signs.accuracy < REWRITE_BELOW:
        return int(rng.integers(2, 5))
    here = brief.parents[0].candidate
    rejected = sum(
        edge.parent == here and edge.verdict is Verdict.REJECTED for edge in brief.snapshot
    )
    boldness = BOLDNESS * max(0.0, 1.0 - signs.accuracy / BOLD_BELOW) + 0.3 * rejected
    return 1 + int(rng.binomial(1 + (rejected > 1), min(0.8, boldness)))
