"""What a view of a running search is, and the snapshot that the runtime feeds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from milo.core.budget import Budget, Spend
from milo.core.events import Record


class Doing(StrEnum):
    """The usual words for what an island, or the run as a whole, is doing now."""

    SCORING_SEED = "scoring seed"
    MUTATING = "mutating"
    SCORING = "scoring"
    VALIDATING = "validating"
    CONSULTING = "consulting"
    WAITING = "waiting"
    TESTING = "testing"
    CLOSED = "closed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """One piece of work under way: `done` of the `wanted` attempts that it takes in all.

    `doing` is one of `Doing` or other words. Attempts already on record count as done, so that a
    bar shows work that is left and not work that is queued.
    """

    doing: str
    candidate: str = ""
    parent: str = ""
    done: int = 0
    wanted: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """A snapshot of a running search, taken about twice a second.

    `islands` is the work of each island by its id; `whole` the work of the run itself (the test
    of the winner), if any. `seconds` counts the time that the run was active, as the budget does.
    `is_priced` is False where the price of a model is unknown, so that dollars are not complete.
    `troubles` are what the run waits out: a provider that is down, a full disk.
    """

    budget: Budget
    spent: Spend = field(default_factory=Spend)
    seconds: float = 0.0
    slots_busy: int = 0
    slots_total: int = 0
    queued: int = 0
    islands: Mapping[str, Work] = field(default_factory=dict)
    whole: Work | None = None
    is_priced: bool = True
    troubles: tuple[str, ...] = ()


class View(Protocol):
    """Shows a running search. Belongs to one thread; no call waits for anything."""

    def start(self, title: str, past: Sequence[Record] = ()) -> None:
        """Begin; `past` are the records of a resumed run, folded and not shown again."""
        ...

    def update(self, records: Sequence[Record]) -> None:
        """New records, in journal order."""
        ...

    def progress(self, snapshot: Progress) -> None:
        """What is going on now."""
        ...

    def message(self, words: str) -> None:
        """A line for the user, such as the sandbox's description or a warning."""
        ...

    def stop(self) -> None:
        """Give the terminal back; safe to call twice."""
        ...


class Pace:
    """Estimates when each island's piece of work ends, from how fast it went so far. One owner."""

    def __init__(self) -> None:
        self._begun: dict[str, tuple[tuple[str, str, int], float, int]] = {}

    def left(self, island: str, work: Work, seconds: float) -> float | None:
        """Seconds left of a piece of work at a moment of the run; None before any is known.

        Attempts that were on record before the work was first seen say nothing about its pace.
        """
        piece = (work.doing, work.candidate, work.wanted)
        known = self._begun.get(island)
        if known is None or known[0] != piece or work.done < known[2]:
            self._begun[island] = (piece, seconds, work.done)
            return None
        made, took = work.done - known[2], seconds - known[1]
        if made <= 0 or not took > 0:
            return None
        return max(0, work.wanted - work.done) * took / made


class TimeLeft(NamedTuple):
    """Seconds until the tightest limit binds at the present rate, and the limit's name."""

    seconds: float
    limit: str


def shares_used(progress: Progress, rounds: float) -> dict[str, float]:
    """Share of each limit that is used; `rounds` is the mean of rounds done over the islands."""
    budget, spent = progress.budget, progress.spent
    hours = progress.seconds / 3600
    used = {
        "rounds": (rounds, budget.rounds),
        "time": (hours, budget.hours),
        "attempts": (spent.attempts, budget.attempts),
        "tokens": (spent.tokens, budget.tokens),
        "dollars": (spent.dollars, budget.dollars),
    }
    return {name: amount / cap for name, (amount, cap) in used.items() if cap}


def time_left(progress: Progress, rounds: float) -> TimeLeft | None:
    """Estimate from the tightest limit, taking the mean rate so far; None before any is known.

    The time limit needs no rate. A limit of which nothing is used yet gives no estimate.
    """
    estimates = [
        TimeLeft(max(0.0, progress.seconds * (1 - share) / share), name)
        for name, share in shares_used(progress, rounds).items()
        if share > 0 and progress.seconds > 0
    ]
    return min(estimates) if estimates else None
