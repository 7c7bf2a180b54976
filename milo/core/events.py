"""Every change of state as one frozen event; a run's state is the fold of its events.

Events of one island form its shard, in order. `kind` is the tag under which a record is stored.
Shards: ``run`` (the driver), ``orchestrator``, and one per island id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from milo.core.attempt import Usage
from milo.core.fitness import TaskScore
from milo.core.hypervolume import Frame
from milo.core.moves import Consultation, Move


class Verdict(StrEnum):
    """What became of a candidate."""

    SEED = "seed"
    ADMITTED = "admitted"
    REJECTED = "rejected"
    INVALID = "invalid"

    @property
    def is_member(self) -> bool:
        """Whether the candidate belongs to its island's admitted set."""
        return self in (Verdict.SEED, Verdict.ADMITTED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The mutator's own account of an edit; the annotation of a lineage edge.

    `touched` is measured, not said: which parts of the parent the edit changed (`core.touched`).
    """

    title: str
    diagnosis: str = ""
    hypothesis: str = ""
    evidence: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStarted:
    """The run exists: its name, resolved plan (as JSON-ready data) and splits.

    `seeds` are the seeds' names in the order in which they were given, `tasks` the content hashes
    of the splits' tasks; a resume goes on with both.
    """

    kind: ClassVar[str] = "run_started"
    name: str
    plan: Mapping[str, object]
    search: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]
    model: str
    seeds: tuple[str, ...] = ()
    tasks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResumed:
    """The run goes on after a stop; `overrides` are configuration changes that were allowed, each
    ``key=JSON`` with the plan's dotted key. They hold from now on."""

    kind: ClassVar[str] = "run_resumed"
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class IslandFounded:
    """A new island with its mutator, from a seed, or from `source` by Speciate.

    `members` are the admitted candidates that it starts with (the root first); `niche` says in
    words what a speciated island was founded to serve.
    """

    kind: ClassVar[str] = "island_founded"
    island: str
    mutator: str
    root: str
    members: tuple[str, ...] = ()
    source: str = ""
    niche: str = ""
    search: tuple[str, ...] = ()
    epoch: int = 0
    frame: Frame | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CandidateProposed:
    """A candidate entered the lineage. Parents are empty for a seed, two for a graft.

    `harness` is its content hash, `usage` what the mutator spent. `tries` counts the proposals,
    this one too; `sent_back` says of each that was refused why, in full. That is for the run's
    owner alone, since it may name tasks that are held out.
    """

    kind: ClassVar[str] = "candidate_proposed"
    island: str
    candidate: str
    round: int
    parents: tuple[str, ...]
    harness: str
    mutator: str
    change: Change
    patch_lines: int = 0
    tries: int = 1
    usage: Usage = field(default_factory=Usage)
    sent_back: tuple[str, ...] = ()
    seen: int = -1
    """The island's last finished round when the proposer was asked: the shard up to this child of
    the round after it is the lineage that the proposer was shown. -1 in a seed, or in records of
    earlier versions (there it was the round before the child's)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalSentBack:
    """A proposal for a candidate was refused before anything was paid for its attempts.

    `reason` is what the mutator is told, `full` (where it says more) is for the run's owner alone;
    `usage` is what the mutator spent. `CandidateProposed` holds the sum of all of a candidate's.
    """

    kind: ClassVar[str] = "proposal_sent_back"
    island: str
    candidate: str
    round: int
    reason: str
    full: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class CandidateScored:
    """Per-task scores of a candidate on a split, replacing earlier ones of the same tasks."""

    kind: ClassVar[str] = "candidate_scored"
    island: str
    candidate: str
    split: str
    scores: Mapping[str, TaskScore]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CandidateJudged:
    """The verdict, its reason in words, and the hypervolume gain with its bootstrap support."""

    kind: ClassVar[str] = "candidate_judged"
    island: str
    candidate: str
    round: int
    verdict: Verdict
    reason: str
    gain: float = 0.0
    support: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class FrameFixed:
    """The island's scale and reference point for one search set."""

    kind: ClassVar[str] = "frame_fixed"
    island: str
    epoch: int
    search: tuple[str, ...]
    frame: Frame


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundEnded:
    """One generation is over: the stall count and best validation accuracy after it."""

    kind: ClassVar[str] = "round_ended"
    island: str
    round: int
    stall: int
    best_validation: float


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveApplied:
    """A move took effect on this island before its round `round`."""

    kind: ClassVar[str] = "move_applied"
    island: str
    round: int
    move: Move


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveVoided:
    """A move could not take effect on this island before its round `round`, and never will."""

    kind: ClassVar[str] = "move_voided"
    island: str
    round: int
    move: Move
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Consulted:
    """The orchestrator answered for a stalled island (shard ``orchestrator``)."""

    kind: ClassVar[str] = "consulted"
    consultation: Consultation
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class IslandClosed:
    """The island starts no further round, and why."""

    kind: ClassVar[str] = "island_closed"
    island: str
    round: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WinnerFrozen:
    """The winner is fixed before the test split is read; `front` is the validated front."""

    kind: ClassVar[str] = "winner_frozen"
    candidate: str
    island: str
    rule: str
    front: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEnded:
    """The run is over; `searched` is False where no child was ever scored."""

    kind: ClassVar[str] = "run_ended"
    reason: str
    searched: bool


Event = (
    RunStarted
    | RunResumed
    | IslandFounded
    | CandidateProposed
    | ProposalSentBack
    | CandidateScored
    | CandidateJudged
    | FrameFixed
    | RoundEnded
    | MoveApplied
    | MoveVoided
    | Consulted
    | IslandClosed
    | WinnerFrozen
    | RunEnded
)

EVENT_TYPES: Mapping[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        RunStarted,
        RunResumed,
        IslandFounded,
        CandidateProposed,
        ProposalSentBack,
        CandidateScored,
        CandidateJudged,
        FrameFixed,
        RoundEnded,
        MoveApplied,
        MoveVoided,
        Consulted,
        IslandClosed,
        WinnerFrozen,
        RunEnded,
    )
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One line of the journal: a total order over all shards, and the writer's epoch."""

    seq: int
    time: float
    shard: str
    epoch: int
    event: Event
