"""The orchestrator's four moves and the diagnoses behind them (SPEC §3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Diagnosis(StrEnum):
    """What is wrong with an island, or with the whole population."""

    DRY_MUTATOR = "dry mutator"
    EXHAUSTED_LINEAGE = "exhausted lineage"
    CROWDED_OUT_NICHE = "crowded-out niche"
    PLATEAU = "whole-population plateau"
    HEALTHY = "healthy"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reassign:
    """Island `island` gets `mutator` from the pool."""

    island: str
    mutator: str
    kind: Literal["reassign"] = "reassign"


@dataclass(frozen=True, kw_only=True, slots=True)
class Graft:
    """The best harnesses of both islands are co-parents of `island`'s next child."""

    island: str
    donor: str
    donor_candidate: str
    kind: Literal["graft"] = "graft"


@dataclass(frozen=True, kw_only=True, slots=True)
class Speciate:
    """The subtree of `island` rooted at `root` becomes `new_island` with its own mutator."""

    island: str
    root: str
    mutator: str
    new_island: str
    kind: Literal["speciate"] = "speciate"


@dataclass(frozen=True, kw_only=True, slots=True)
class Curriculum:
    """The search set of every island is replaced by `tasks`, the `epoch`-th set of the run."""

    tasks: tuple[str, ...]
    epoch: int
    kind: Literal["curriculum"] = "curriculum"


Move = Reassign | Graft | Speciate | Curriculum


def islands_touched(move: Move) -> tuple[str, ...] | None:
    """The islands whose stall count the move resets; None means all of them."""
    return None if isinstance(move, Curriculum) else (move.island,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A proposed move that the referee refused, with the reason."""

    move: Move
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Consultation:
    """The orchestrator's answer for one stalled island: words, at most two moves, refusals."""

    island: str
    round: int
    diagnosis: Diagnosis
    words: str
    moves: tuple[Move, ...] = ()
    refused: tuple[Refusal, ...] = ()
