"""The end report as data: what was found, how it came about, what it cost, what to doubt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from milo.core.attempt import Usage
from milo.core.budget import Budget, Spend
from milo.core.events import Change, Verdict
from milo.core.fitness import Fitness, Interval
from milo.views.spending import Coverage
from milo.views.text import json_ready


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One harness on one split: PR@k and RR@k with their task-clustered 95 % intervals, the
    share of tasks solved at least once, and mean tokens and seconds per attempt.

    `tasks` of `wanted` tasks have a valid attempt and enter the means.
    """

    candidate: str
    title: str
    tasks: int
    wanted: int
    k: int
    reward: Interval
    resolved: Interval
    solved_once: float
    tokens: float
    latency_s: float
    coverage: Coverage


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The winner against every seed on one split; None and empty where nothing was scored.

    `difference` is winner − best seed, paired over the tasks that both have; ratios are the
    winner's means over the best seed's.
    """

    split: str
    winner: Measured | None = None
    seeds: tuple[Measured, ...] = ()
    best_seed: str = ""
    difference: Interval | None = None
    paired_tasks: int = 0
    tokens_ratio: float | None = None
    latency_ratio: float | None = None

    @property
    def is_established(self) -> bool:
        """Whether the interval of the difference lies above zero."""
        return self.difference is not None and self.difference.low > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One edit on the way from seed to winner, and what it did on the search tasks of both."""

    candidate: str
    parents: tuple[str, ...]
    round: int
    mutator: str
    change: Change
    gain: float
    patch_lines: int
    before: Fitness | None
    after: Fitness | None
    tasks: int
    patch: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveOutcome:
    """One orchestrator move in words, and what came of it."""

    kind: str
    words: str
    applied: bool
    outcome: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsultationLine:
    """One call of the orchestrator: diagnosis in words, moves, and what was refused and why."""

    island: str
    round: int
    diagnosis: str
    words: str
    moves: tuple[MoveOutcome, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CandidateLine:
    """One candidate of the run; `search` is its fitness on the search tasks that it has."""

    candidate: str
    island: str
    round: int
    parents: tuple[str, ...]
    mutator: str
    title: str
    verdict: Verdict | None
    reason: str
    gain: float
    search: Fitness | None
    validation: Interval | None
    coverage: Coverage


@dataclass(frozen=True, kw_only=True, slots=True)
class Spending:
    """Budget against what was spent, by limit and by role."""

    budget: Budget
    spent: Spend
    rounds: int
    hours: float
    by_role: Mapping[str, Usage] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where the run and its winner's harness lie, and the commands that run and export it."""

    run: str
    harness: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Everything that the end of a run tells its user."""

    name: str
    model: str
    headline: str
    ended: str
    searched: bool
    winner: str
    rule: str
    validation: Comparison
    test: Comparison
    path: tuple[Step, ...]
    consultations: tuple[ConsultationLine, ...]
    candidates: tuple[CandidateLine, ...]
    front: tuple[Measured, ...]
    spending: Spending
    coverage: Coverage
    place: Place
    warnings: tuple[str, ...]


def report_json(report: Report) -> str:
    """The report as JSON: no NaN, an infinite or unknown figure is null."""
    return json.dumps(json_ready(report), indent=2, sort_keys=True, allow_nan=False)
