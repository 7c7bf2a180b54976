"""The arena's mutator: read the program, look at its course, edit, smoke-test, explain."""

from __future__ import annotations

import numpy as np

from milo.agents.arena_operators.edits import (
    Edit,
    Edited,
    Schedule,
    crossed,
    drop,
    insert,
    reshare,
    swap,
    tune,
    weighted,
)
from milo.agents.arena_operators.evidence import Course, course_of
from milo.agents.arena_operators.program import Program, read_program
from milo.core.errors import MiloError
from milo.core.events import Change, Verdict
from milo.core.evidence import Brief, Proposal
from milo.core.ports import Workshop
from milo.core.tree import FileTree

TRIES = 4
DRAWS = 20
STUCK = 0.4
"""Share of idle time from which an optimizer is held to be stuck."""
NAMES = ("arena", "arena-tune", "arena-recombine")


class NothingToEdit(MiloError):
    """The parent is no optimizer program, or no child of it passed its smoke test."""


class ArenaMutator:
    """Rewrites the schedule of an optimizer program. Stateless: may be shared.

    ``arena-tune`` prefers numbers, ``arena-recombine`` the moves and their order.
    """

    def __init__(self, name: str = "arena") -> None:
        self._name = name

    @property
    def name(self) -> str:
        """As the pool names it."""
        return self._name

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """A child that passed its smoke test; raises `NothingToEdit` where none did."""
        rng = np.random.default_rng(brief.seed)
        program = read_program(brief.parents[0].harness.tree)
        if program is None:
            raise NothingToEdit(f"mutator {self.name}: no SCHEDULE of moves in the parent's source")
        course = course_of(brief.parents[0].evidence)
        error = "every edit gives a program that was seen before"
        for _ in range(TRIES):
            draft = self._draft(brief, program, course, rng)
            if draft is None:
                break
            tree, titles = draft
            error = await workshop.smoke(tree)
            if not error:
                return Proposal(tree=tree, change=account(titles, course))
        raise NothingToEdit(f"mutator {self.name}: {error}")

    def _draft(
        self, brief: Brief, program: Program, course: Course, rng: np.random.Generator
    ) -> tuple[FileTree, list[str]] | None:
        refused = rejected_titles(brief)
        for _ in range(DRAWS):
            schedule, titles = self._start(brief, program, rng)
            for _ in range(number_of_edits(course, rng)):
                edited = self._edit(course, rng)(program, schedule, rng)
                if edited is not None and edited.title not in refused:
                    schedule = edited.schedule
                    titles.append(edited.title)
            tree = program.with_schedule(schedule)
            if titles and tree.digest not in brief.forbidden_digests and tree != program.tree:
                return tree, titles
        return None

    def _start(
        self, brief: Brief, program: Program, rng: np.random.Generator
    ) -> tuple[Schedule, list[str]]:
        """The parent's schedule, or one crossed from both parents of a graft."""
        other = read_program(brief.parents[1].harness.tree) if len(brief.parents) > 1 else None
        if other is None or not {e["move"] for e in other.schedule} <= set(program.moves):
            return program.schedule, []
        joined: Edited = crossed(program.schedule, other.schedule, rng)
        return joined.schedule, [joined.title]

    def _edit(self, course: Course, rng: np.random.Generator) -> Edit:
        """A stuck optimizer gets other moves, one that still improves gets its numbers tuned."""
        stuck = course.idle > STUCK
        numbers = 4.0 if self._name == "arena-tune" else 1.0
        moves = 4.0 if self._name == "arena-recombine" else 1.0
        return weighted(
            (
                (tune, numbers * (1.0 if stuck else 3.0)),
                (reshare, numbers * 0.7),
                (insert, moves * (3.0 if stuck else 1.0)),
                (drop, moves * (0.5 if stuck else 1.0)),
                (swap, moves * 0.4),
            ),
            rng,
        )


def number_of_edits(course: Course, rng: np.random.Generator) -> int:
    """One to three; more where little is reached."""
    return 1 + int(rng.binomial(2, 0.6 if course.reward < 0.5 else 0.25))


def rejected_titles(brief: Brief) -> frozenset[str]:
    """Single edits of this parent that were refused before."""
    here = brief.parents[0].candidate
    return frozenset(
        edge.change.title
        for edge in brief.snapshot
        if edge.parent == here and edge.verdict in (Verdict.REJECTED, Verdict.INVALID)
    )


def account(titles: list[str], course: Course) -> Change:
    """The mutator's own words."""
    return Change(
        title="; ".join(titles),
        diagnosis=course.words + ".",
        hypothesis=(
            "The same time brings the constructions farther. Refuted unless the mean reward "
            f"exceeds {course.reward:.4f}."
        ),
    )
