"""What a run has spent and how much of it counted: folds over attempts and journal records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from milo.core.attempt import Outcome, Usage
from milo.core.budget import Budget, Spend
from milo.core.events import (
    CandidateJudged,
    CandidateScored,
    Record,
    RunResumed,
    Verdict,
    WinnerFrozen,
)
from milo.core.population import Population


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """Attempts that were made and those that say something about the harness."""

    attempted: int = 0
    valid: int = 0

    @property
    def share(self) -> float | None:
        """Valid attempts over attempted ones; None where nothing was attempted."""
        return self.valid / self.attempted if self.attempted else None

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(attempted=self.attempted + other.attempted, valid=self.valid + other.valid)

    def __str__(self) -> str:
        return f"{self.valid}/{self.attempted}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """All attempts of a run in sums: per (harness digest, split), by fault, by flag, and usage."""

    coverage: Mapping[tuple[str, str], Coverage] = field(default_factory=dict)
    total: Coverage = field(default_factory=Coverage)
    usage: Usage = field(default_factory=Usage)
    faults: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)

    def of(self, harness: str, split: str) -> Coverage:
        """Coverage of one harness on one split."""
        return self.coverage.get((harness, split), Coverage())


class _UsageSum:
    """Adds usages up in place: a run has millions of them."""

    def __init__(self) -> None:
        self._sums = [0] * 6
        self._dollars: float | None = 0.0
        self._estimated = False

    def add(self, usage: Usage) -> None:
        """Add one."""
        sums = self._sums
        sums[0] += usage.uncached_input
        sums[1] += usage.cached_input
        sums[2] += usage.cache_write
        sums[3] += usage.output
        sums[4] += usage.reasoning
        sums[5] += usage.calls
        unknown = self._dollars is None or usage.dollars is None
        self._dollars = None if unknown else self._dollars + usage.dollars  # type: ignore[operator]
        self._estimated = self._estimated or usage.estimated

    @property
    def total(self) -> Usage:
        """The sum; its price is unknown where any part's is."""
        uncached, cached, written, output, reasoning, calls = self._sums
        return Usage(
            uncached_input=uncached,
            cached_input=cached,
            cache_write=written,
            output=output,
            reasoning=reasoning,
            calls=calls,
            dollars=self._dollars,
            estimated=self._estimated,
        )


def tally(outcomes: Iterable[Outcome], splits: Mapping[str, str]) -> Tally:
    """Sum the attempts in one pass; `splits` names each task's split.

    Memory grows with harnesses, not with attempts.
    """
    made: Counter[tuple[str, str]] = Counter()
    valid: Counter[tuple[str, str]] = Counter()
    faults: Counter[str] = Counter()
    flags: Counter[str] = Counter()
    usage = _UsageSum()
    for outcome in outcomes:
        where = (outcome.key.harness, splits.get(outcome.key.task, ""))
        made[where] += 1
        if outcome.is_valid:
            valid[where] += 1
        else:
            faults[str(outcome.status)] += 1
        if outcome.flags:
            flags.update(outcome.flags)
        usage.add(outcome.usage)
    coverage = {w: Coverage(attempted=made[w], valid=valid[w]) for w in made}
    return Tally(
        coverage=coverage,
        total=sum(coverage.values(), Coverage()),
        usage=usage.total,
        faults=dict(sorted(faults.items())),
        flags=dict(sorted(flags.items())),
    )


def split_of_tasks(population: Population) -> dict[str, str]:
    """Each task's split, as the run started with it; empty before the start."""
    started = population.started
    if started is None:
        return {}
    return {
        task: split
        for split in ("search", "validation", "test")
        for task in getattr(started, split)
    }


def spend_by_role(population: Population, target: Usage) -> dict[str, Usage]:
    """Usage of the target (from the attempts), the mutators and the orchestrator."""
    return {
        "target": target,
        "mutator": sum((node.usage for node in population.lineage), Usage()),
        "orchestrator": sum((c.usage for c in population.consultations), Usage()),
    }


def planned_budget(plan: Mapping[str, object]) -> Budget:
    """The budget of a recorded plan; limits that it does not name do not bind."""
    known = plan.get("budget")
    if not isinstance(known, Mapping):
        return Budget()
    return Budget(**{f.name: known[f.name] for f in fields(Budget) if f.name in known})


def limit_words(
    budget: Budget, spent: Spend, *, rounds: int, hours: float
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is spent: of each limit that binds (``attempts 3 of 20``), and without a limit."""
    used = {
        "rounds": rounds,
        "hours": round(hours, 3),
        "attempts": spent.attempts,
        "tokens": spent.tokens,
        "dollars": round(spent.dollars, 4),
    }
    caps = {name: getattr(budget, name) for name in used}
    limited = tuple(
        f"{name} {used[name]} of {cap}" for name, cap in caps.items() if cap is not None
    )
    free = tuple(f"{name} {used[name]}" for name, cap in caps.items() if cap is None)
    return limited, free


@dataclass(frozen=True, kw_only=True, slots=True)
class Moments:
    """When things last happened, in seconds since the epoch; None where they never did.

    `active_s` leaves out the time between a stop and its resume. Progress is any scored or
    judged candidate.
    """

    started: float | None = None
    last: float | None = None
    progress: float | None = None
    admission: float | None = None
    admitted: str = ""
    active_s: float = 0.0


class MomentsFold:
    """Folds records, in order, into `Moments`. One owner."""

    def __init__(self, known: Moments = Moments()) -> None:
        self._started = known.started
        self._last = known.last
        self._progress = known.progress
        self._admission = known.admission
        self._admitted = known.admitted
        self._active = known.active_s

    def apply(self, record: Record) -> None:
        """Fold one record in."""
        event = record.event
        if self._started is None:
            self._started = record.time
        elif not isinstance(event, RunResumed) and self._last is not None:
            self._active += max(0.0, record.time - self._last)
        self._last = record.time
        if isinstance(event, CandidateScored | CandidateJudged | WinnerFrozen):
            self._progress = record.time
        if isinstance(event, CandidateJudged) and event.verdict is Verdict.ADMITTED:
            self._admission, self._admitted = record.time, event.candidate

    @property
    def moments(self) -> Moments:
        """The moments so far."""
        return Moments(
            started=self._started,
            last=self._last,
            progress=self._progress,
            admission=self._admission,
            admitted=self._admitted,
            active_s=self._active,
        )
