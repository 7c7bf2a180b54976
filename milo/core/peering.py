"""What a whole search method is given that proposes through us: measurements, and a long life.

A peer (GEPA, OpenEvolve, …) chooses parents and candidates itself and asks for scores as it goes.
To an island it is a mutator that lives as long as the island and whose questions are answered by
the same path that scores every other candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from milo.core.evidence import Evidence
from milo.core.fitness import TaskScore
from milo.core.ports import Mutator, SessionReport, Workshop
from milo.core.tree import FileTree


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """A harness on some search tasks: scores by task, and attempts as a mutator may see them.

    `refusal` says why nothing was run ("" where it was); a task without a valid attempt is in
    neither mapping.
    """

    scores: Mapping[str, TaskScore] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    refusal: str = ""


@runtime_checkable
class MeasuringWorkshop(Workshop, Protocol):
    """A workshop that also measures."""

    async def measure(self, tree: FileTree, tasks: Sequence[str]) -> Measured:
        """Score a tree on tasks of the search set, as a candidate would be.

        What is on record is not run again. Raises `MiloError` where search work is over.
        """
        ...


@runtime_checkable
class Engaged(Mutator, Protocol):
    """A mutator that holds something from one proposal to the next; its island closes it.

    It raises `SearchOver` once it has nothing more to propose.
    """

    async def close(self) -> None:
        """Give up what is held; safe to call twice."""
        ...


class LiveSession(Protocol):
    """A model session while its program lives. `scope` is that of the calls made from now on."""

    scope: str

    def report_in(self, scope: str) -> SessionReport:
        """What came of its calls under a scope; calls in flight are not in it yet."""
        ...
