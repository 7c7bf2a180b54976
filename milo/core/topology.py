"""Which islands there are, who belongs to them and what they search on: a fold of events."""

from __future__ import annotations

from dataclasses import dataclass, replace

from milo.core.errors import RecordError
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    Event,
    FrameFixed,
    IslandClosed,
    IslandFounded,
    MoveApplied,
    MoveVoided,
    RoundEnded,
)
from milo.core.hypervolume import Frame
from milo.core.lineage import Lineage
from milo.core.moves import Curriculum, Graft, Move, Reassign, Speciate


@dataclass(frozen=True, kw_only=True, slots=True)
class IslandState:
    """One island as its shard tells it.

    `members` is the admitted set, root first; `search` the current search set and `epoch` its
    number; `frame` is None until the seeds are scored on it; `pending_graft` the donor candidate
    that co-parents the next child; `round` the last finished round.
    """

    island: str
    mutator: str
    root: str
    members: tuple[str, ...] = ()
    source: str = ""
    niche: str = ""
    search: tuple[str, ...] = ()
    epoch: int = 0
    frame: Frame | None = None
    round: int = -1
    stall: int = 0
    best_validation: float = 0.0
    pending_graft: str = ""
    moved_out: tuple[str, ...] = ()
    closed: str = ""


class Topology:
    """All islands by id, in founding order, and the moves that were applied to them, or voided."""

    def __init__(self) -> None:
        self.islands: dict[str, IslandState] = {}
        self.moves: list[tuple[str, int, Move]] = []
        self.voided: list[tuple[str, int, Move]] = []

    def __getitem__(self, island: str) -> IslandState:
        if island not in self.islands:
            raise RecordError(f"island {island} was never founded")
        return self.islands[island]

    def copy(self) -> Topology:
        """As it stands now; states and moves are frozen and shared."""
        twin = Topology()
        twin.islands, twin.moves = dict(self.islands), list(self.moves)
        return twin

    def apply(self, event: Event, lineage: Lineage) -> None:
        """Fold one event in, after `lineage` has folded it."""
        match event:
            case IslandFounded():
                self._found(event)
            case CandidateProposed() if len(event.parents) > 1:
                self._set(event.island, pending_graft="")
            case CandidateJudged() if event.verdict.is_member:
                self._join(event)
            case FrameFixed():
                self._set(event.island, frame=event.frame, search=event.search, epoch=event.epoch)
            case RoundEnded():
                self._set(
                    event.island,
                    round=event.round,
                    stall=event.stall,
                    best_validation=event.best_validation,
                )
            case MoveApplied():
                self._move(event, lineage)
            case MoveVoided():
                self.voided.append((event.island, event.round, event.move))
            case IslandClosed():
                self._set(event.island, closed=event.reason)
            case _:
                pass

    def _set(self, island: str, **changes: object) -> None:
        self.islands[island] = replace(self[island], **changes)  # type: ignore[arg-type]

    def _found(self, event: IslandFounded) -> None:
        if event.island in self.islands:
            raise RecordError(f"island {event.island} was founded twice")
        self.islands[event.island] = IslandState(
            island=event.island,
            mutator=event.mutator,
            root=event.root,
            members=event.members,
            source=event.source,
            niche=event.niche,
            search=event.search,
            epoch=event.epoch,
            frame=event.frame,
        )

    def _join(self, event: CandidateJudged) -> None:
        state = self[event.island]
        if event.candidate not in state.members:
            self._set(event.island, members=(*state.members, event.candidate), pending_graft="")

    def _move(self, event: MoveApplied, lineage: Lineage) -> None:
        self.moves.append((event.island, event.round, event.move))
        match event.move:
            case Reassign(mutator=mutator):
                self._set(event.island, mutator=mutator, stall=0)
            case Graft(donor_candidate=donor):
                self._set(event.island, pending_graft=donor, stall=0)
            case Curriculum(tasks=tasks, epoch=epoch):
                self._set(event.island, search=tasks, epoch=epoch, frame=None, stall=0)
            case Speciate(root=root):
                self._move_out(event.island, moved_members(self[event.island], root, lineage))

    def _move_out(self, island: str, moved: tuple[str, ...]) -> None:
        state = self[island]
        self._set(
            island,
            members=tuple(m for m in state.members if m not in moved),
            moved_out=(*state.moved_out, *moved),
            stall=0,
        )


def moved_members(state: IslandState, root: str, lineage: Lineage) -> tuple[str, ...]:
    """The admitted members that Speciate(root) takes: root's subtree without the source's best."""
    best = best_member(state, lineage)
    subtree = set(lineage.subtree(root))
    return tuple(m for m in state.members if m in subtree and m != best)


def best_member(state: IslandState, lineage: Lineage) -> str:
    """Highest accuracy on the current search set, ties by tokens, then by age.

    A member that isn't yet scored on the whole set ranks below every one that is.
    """

    def rank(candidate: str) -> tuple[float, float]:
        fitness = lineage[candidate].fitness("search", state.search)
        return (-fitness.accuracy, fitness.tokens) if fitness else (1.0, 0.0)

    return min(state.members, key=rank)
