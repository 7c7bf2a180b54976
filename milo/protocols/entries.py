"""What a run contributes to a leaderboard: its winner and its seeds, scored on one split.

Scores are read from the attempts, so they hold everything that was measured; only deliberate
re-scorings (other replicates) are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from milo.core.attempt import Outcome, Usage
from milo.core.errors import RunError
from milo.core.events import Record, RunResumed
from milo.core.lineage import Node
from milo.core.population import Population
from milo.store import RunReader, decode_plan

SPLITS = ("test", "validation")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """One harness on a split: every outcome by task and task content, missing ones included.

    `name` is what its manifest calls it.
    """

    candidate: str
    name: str
    harness: str
    outcomes: Mapping[tuple[str, str], tuple[Outcome, ...]]

    @property
    def measured(self) -> frozenset[tuple[str, str]]:
        """Tasks (with their content hash) that have a valid attempt."""
        return frozenset(t for t, all_ in self.outcomes.items() if any(o.is_valid for o in all_))


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchCost:
    """What a run spent in all: attempts, usage of target, mutators, orchestrator, active hours.

    `optimizer_*` is the part of mutators and orchestrator.
    """

    attempts: int
    usage: Usage
    hours: float
    optimizer_tokens: int = 0
    optimizer_calls: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One run: what it ran, what it cost, its winner and its seeds on the chosen split."""

    run: str
    method: str
    seed: int
    suite: str
    model: str
    split: str
    winner: Scored
    seeds: tuple[Scored, ...]
    cost: SearchCost
    ended: str = ""
    tasks: tuple[str, ...] = field(default=())


def read_entry(path: Path, split: str = "") -> Entry:
    """The entry of a run, on the test split where it has one, or on the split that is named.

    Raises `RunError` for a run without a winner, or one whose winner is not scored there.
    """
    with RunReader(path) as reader:
        population = reader.population()
        started, winner = population.started, population.winner
        if started is None or winner is None:
            raise RunError(f"run {path}", "a winner to compare", "none frozen yet")
        chosen = split or next(s for s in SPLITS if getattr(started, s))
        tasks: tuple[str, ...] = getattr(started, chosen)
        plan = decode_plan(reader.plan)
        lineage = population.lineage
        return Entry(
            run=str(path),
            method=plan.strategy.name,
            seed=plan.seed,
            suite=plan.suite.name,
            model=started.model,
            split=chosen,
            winner=_winner(path, chosen, _scored(reader, lineage[winner.candidate], tasks)),
            seeds=tuple(_scored(reader, node, tasks) for node in lineage if not node.parents),
            cost=_cost(reader, population),
            ended=population.ended.reason if population.ended else "",
            tasks=tasks,
        )


def _winner(path: Path, split: str, winner: Scored) -> Scored:
    if not winner.measured:
        raise RunError(f"run {path}", f"a winner scored on the {split} split", "no valid attempt")
    return winner


def _scored(reader: RunReader, node: Node, tasks: Iterable[str]) -> Scored:
    wanted = set(tasks)
    found: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in reader.attempts.of_harness(node.harness):
        key = outcome.key
        if key.task in wanted and key.replicate == 0:
            found.setdefault((key.task, key.task_digest), []).append(outcome)
    return Scored(
        candidate=node.candidate,
        name=reader.harnesses.get(node.candidate).manifest.name,
        harness=node.harness,
        outcomes={task: tuple(found[task]) for task in sorted(found)},
    )


def _cost(reader: RunReader, population: Population) -> SearchCost:
    optimizer = sum((node.usage for node in population.lineage), Usage())
    optimizer = sum((consulted.usage for consulted in population.consultations), optimizer)
    return SearchCost(
        attempts=reader.attempts.count,
        usage=reader.attempts.spent() + optimizer,
        hours=active_s(reader.records()) / 3600,
        optimizer_tokens=optimizer.tokens,
        optimizer_calls=optimizer.calls,
    )


def active_s(records: Iterable[Record]) -> float:
    """Seconds between records, without those between a stop and its resume."""
    total, last = 0.0, None
    for record in records:
        if last is not None and not isinstance(record.event, RunResumed):
            total += max(0.0, record.time - last)
        last = record.time
    return total
