"""What an island asks of its shell, and what it is set up with: the words of ask and tell."""

from __future__ import annotations

from dataclasses import dataclass

from milo.core.plan import StrategyPlan


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedRef:
    """A seed candidate's id (``<island>.0``) and the content hash of its harness."""

    candidate: str
    harness: str


@dataclass(frozen=True, kw_only=True, slots=True)
class IslandSetup:
    """All that an island is configured with; the same at founding and at every restore.

    `seeds` are those of all islands (they fix the cost scales), `k` attempts are made per task,
    `validation` is the validation split, `rounds` the last round (None: no such limit).
    """

    island: str
    strategy: StrategyPlan
    k: int
    validation: tuple[str, ...]
    seeds: tuple[SeedRef, ...]
    run_seed: int = 0
    rounds: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NeedScores:
    """Score a candidate: `k` attempts on each of `tasks` of `split`. Answer with `scored`.

    Attempts that were made before need not be made again; they are simply told.
    """

    candidate: str
    harness: str
    split: str
    tasks: tuple[str, ...]
    k: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NeedRound:
    """The boundary before a round: apply moves (`begin_round`), or `close`."""

    round: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NeedChild:
    """Make a child of one parent, or of two (a graft: the island's own best first).

    Answer with `proposed`, or with `sent_back` where preflight refused it; then `error` holds the
    reason and `tries` how many were sent back. `candidate` is the id the child will get, `seed`
    feeds the mutator's random generator. `signals` and `library` are the strategy's guidance.
    """

    round: int
    parents: tuple[str, ...]
    seed: int
    error: str
    tries: int
    candidate: str
    signals: str = ""
    library: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class NeedConsultation:
    """The island stalled at the end of `round`: ask the orchestrator, then tell `consulted`."""

    round: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Closed:
    """The island needs nothing any more, and why."""

    reason: str


Need = NeedScores | NeedRound | NeedChild | NeedConsultation | Closed
