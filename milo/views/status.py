"""What `status` says of a run, from its records alone, while it goes on and after it died."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from shlex import quote

from milo.core.attempt import Outcome, Usage
from milo.core.budget import Budget, Spend
from milo.core.events import Record
from milo.core.fitness import Fitness
from milo.core.population import Population
from milo.views import text
from milo.views.lost_calls import Unsettled, unsettled_words
from milo.views.spending import (
    Coverage,
    Moments,
    MomentsFold,
    Tally,
    limit_words,
    split_of_tasks,
    tally,
)
from milo.views.status_fold import Folded, IslandFold, folded
from milo.views.view import Progress


class RunState(StrEnum):
    """Where a run stands."""

    NOT_STARTED = "not started"
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, kw_only=True, slots=True)
class IslandStatus:
    """One island: `tried` children were judged, `admitted` of them joined; the best by search."""

    island: str
    mutator: str
    round: int
    stall: int
    tried: int
    admitted: int
    best_validation: float
    best: str
    best_fitness: Fitness | None
    closed: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WinnerStatus:
    """The frozen winner."""

    candidate: str
    island: str
    rule: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """A run at one moment. Times are seconds since the epoch, ages are seconds.

    `queued` and `in_flight` are None where no live snapshot is at hand, which also tells the
    `troubles` that the run waits out. `spend` is what recorded work used, by role; `spent` is what
    counts against the budget: the ledger's word where there is one, with `unsettled` calls at what
    was promised for them. `warnings` say what was ignored.
    """

    run: str
    state: RunState
    reason: str
    searched: bool
    resume: str
    resumes: int
    active_s: float
    islands: tuple[IslandStatus, ...]
    queued: int | None
    in_flight: int | None
    spend: Mapping[str, Usage]
    coverage: Coverage
    faults: Mapping[str, int]
    last_admission: float | None
    last_admitted: str
    since_progress_s: float | None
    winner: WinnerStatus | None
    budget: Budget = field(default_factory=Budget)
    spent: Spend = field(default_factory=Spend)
    unsettled: Unsettled = field(default_factory=Unsettled)
    warnings: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


def status_of(
    records: Iterable[Record],
    attempts: Iterable[Outcome] | Tally,
    *,
    run: str,
    alive: bool,
    now: float,
    progress: Progress | None = None,
) -> Status:
    """Fold a run's records and attempts, each read once; sums of attempts made elsewhere do too.

    `run` is how the user names the run, `alive` whether a process owns it, `now` in seconds
    since the epoch, `progress` the newest live snapshot, if any.
    """
    population, moments = Population(), MomentsFold()
    for record in records:
        population.apply(record.event)
        moments.apply(record)
    sums = attempts if isinstance(attempts, Tally) else tally(attempts, split_of_tasks(population))
    found = status_at(folded(population, moments.moments), sums, run=run, now=now)
    return told_now(found, alive=alive, progress=progress)


def status_at(past: Folded, sums: Tally, *, run: str, now: float) -> Status:
    """The status that a fold tells, as if nobody owned the run."""
    when, ended, won = past.moments, past.ended, past.winner
    unfinished = RunState.INTERRUPTED if past.started else RunState.NOT_STARTED
    usage = sums.usage + past.mutator + past.orchestrator
    return Status(
        run=run,
        state=unfinished if ended is None else RunState.FINISHED,
        reason=ended.reason if ended else "",
        searched=ended.searched if ended else past.searched,
        resume="",
        resumes=past.resumes,
        active_s=when.active_s,
        islands=tuple(_island(island) for island in past.islands),
        queued=None,
        in_flight=None,
        spend={
            "target": sums.usage,
            "mutator": past.mutator,
            "orchestrator": past.orchestrator,
        },
        coverage=sums.total,
        faults=sums.faults,
        last_admission=when.admission,
        last_admitted=when.admitted,
        since_progress_s=None if when.progress is None else max(0.0, now - when.progress),
        winner=None
        if won is None
        else WinnerStatus(candidate=won.candidate, island=won.island, rule=won.rule),
        budget=past.budget,
        spent=Spend.of(usage, attempts=sums.total.attempted),
    )


def told_now(found: Status, *, alive: bool, progress: Progress | None = None) -> Status:
    """The status with what only the present tells: who owns the run, and its live snapshot."""
    if alive and found.state is not RunState.FINISHED:
        found = replace(found, state=RunState.RUNNING)
    goes_on = found.state in (RunState.INTERRUPTED, RunState.NOT_STARTED)
    return replace(
        found,
        resume=f"milo resume {quote(found.run)}" if goes_on else "",
        queued=progress.queued if progress else None,
        in_flight=progress.slots_busy if progress else None,
        troubles=progress.troubles if progress else (),
    )


def was_searched(population: Population) -> bool:
    """Whether any child was scored; the run's own word where it has ended."""
    if population.ended is not None:
        return population.ended.searched
    return any(node.parents and node.evaluation("search") for node in population.lineage)


def island_statuses(population: Population) -> tuple[IslandStatus, ...]:
    """All islands in founding order, in one pass over the lineage."""
    return tuple(_island(island) for island in folded(population, Moments()).islands)


def _island(island: IslandFold) -> IslandStatus:
    state = island.state
    return IslandStatus(
        island=state.island,
        mutator=state.mutator,
        round=max(0, state.round),
        stall=state.stall,
        tried=island.tried,
        admitted=island.admitted,
        best_validation=state.best_validation,
        best=island.best,
        best_fitness=island.best_fitness,
        closed=state.closed,
    )


def status_json(status: Status) -> str:
    """The status as JSON (no NaN; unknown figures are null)."""
    return json.dumps(text.json_ready(status), indent=2, sort_keys=True, allow_nan=False)


def status_text(status: Status) -> str:
    """The status as plain text, one fact a line."""
    lines = [f"run {status.run}: {_state_words(status)}"]
    lines += [_active_words(status), *(_island_words(i) for i in status.islands)]
    if status.queued is not None:
        lines.append(f"queue: {status.queued} queued, {status.in_flight} in flight")
    lines += [f"waiting: {trouble}" for trouble in status.troubles]
    lines += _budget_words(status)
    lines += [_spend_words(role, usage) for role, usage in status.spend.items()]
    lines += [unsettled_words(status.unsettled)] if status.unsettled.calls else []
    lines.append(_coverage_words(status))
    if status.last_admitted:
        lines.append(f"last admission: {status.last_admitted}")
    if status.since_progress_s is not None and status.state is not RunState.FINISHED:
        lines.append(f"last progress: {text.seconds(status.since_progress_s)} ago")
    if status.winner is not None:
        lines.append(f"winner: {status.winner.candidate} of {status.winner.island}")
    lines += [f"warning: {warning}" for warning in status.warnings]
    return "\n".join(text.one_line(line) for line in lines)


def _state_words(status: Status) -> str:
    if status.resume:
        return f"{status.state}: resume with `{status.resume}`"
    if status.state is RunState.FINISHED:
        searched = "" if status.searched else "; nothing was searched: no child was ever scored"
        return f"finished: {status.reason}{searched}"
    return str(status.state)


def _active_words(status: Status) -> str:
    resumed = f", resumed {text.plural(status.resumes, 'time')}" if status.resumes else ""
    return f"active for {text.seconds(status.active_s)}{resumed}"


def _budget_words(status: Status) -> list[str]:
    """What is used of every limit that binds; nothing where none is known."""
    rounds = max((island.round for island in status.islands), default=0)
    hours = status.active_s / 3600
    limited, _ = limit_words(status.budget, status.spent, rounds=rounds, hours=hours)
    return [f"budget: {'; '.join(limited)}"] if limited else []


def _island_words(island: IslandStatus) -> str:
    fitness = text.fitness(island.best_fitness)
    best = f"; best on search {island.best}: {fitness}" if island.best else ""
    closed = f"; closed: {island.closed}" if island.closed else ""
    return (
        f"island {island.island} ({island.mutator}): round {island.round}, "
        f"{island.admitted} of {island.tried} children admitted, best validation "
        f"{text.percent(island.best_validation)} %, stall {island.stall}{best}{closed}"
    )


def _spend_words(role: str, usage: Usage) -> str:
    estimated = ", partly estimated" if usage.estimated else ""
    return (
        f"spent by {role}: {usage.tokens} tokens in {text.plural(usage.calls, 'call')}, "
        f"{text.dollars(usage.dollars)}{estimated}"
    )


def _coverage_words(status: Status) -> str:
    share = text.percent(status.coverage.share)
    faults = ", ".join(f"{number} {fault}" for fault, number in status.faults.items())
    missing = f" (missing: {faults})" if faults else ""
    return (
        f"coverage: {status.coverage.valid} valid of {status.coverage.attempted} attempts, "
        f"{share} %{missing}"
    )
