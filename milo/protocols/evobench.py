"""Evo-Bench as a way to score a search method (SPEC §7).

The method improves one common seed under a budget of iterations (children that were scored), steps
(its model calls) and hours. The frozen winner is scored on the held-out suite: Overall is the
weighted mean of domain scores, on a scale of 100. AnytimeVal is the mean best-so-far on the visible
suite. (ours) Our visible suite has a part that mutators see (search) and one that only chooses the
winner (validation); AnytimeVal is measured on the former, which every child is scored on, with the
seed as the first revision.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from milo.core.errors import RunError
from milo.core.fitness import Evaluation, TaskScore, score_task
from milo.core.lineage import Lineage
from milo.protocols.entries import Entry, Scored
from milo.protocols.evolution import anytime_value, overall
from milo.protocols.rates import pass_hat

ITERATIONS = 20
HOURS = 48.0
VISIBLE_SHARE = 160 / 608
"""The visible suite's share of all tasks: 160 beside 448 held-out ones."""
PERCENT = 100.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """How scores are aggregated: each task's domain, the domains' weights, and the domains whose
    tasks count only where every attempt resolves them (Pass^k)."""

    domains: Mapping[str, str]
    weights: Mapping[str, float]
    every_attempt: Collection[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class EvoBenchRow:
    """One search under the protocol; scores are on a scale of 100. `exceeded` names limits that
    were not kept: such a row does not count."""

    method: str
    run: str
    suite: str
    model: str
    domains: Mapping[str, float]
    overall: float
    seed_overall: float
    anytime: float
    iterations: int
    iteration_budget: int
    steps: int
    hours: float
    frozen: str
    exceeded: tuple[str, ...]

    @property
    def gain(self) -> float:
        """Points over the seed harness."""
        return self.overall - self.seed_overall


def evobench_row(
    entry: Entry,
    lineage: Lineage,
    scale: Scale,
    *,
    iterations: int = ITERATIONS,
    hours: float = HOURS,
) -> EvoBenchRow:
    """The row of a finished run whose winner and seed are scored on its test split.

    Raises `RunError` for more than one seed, or tasks without a valid attempt.
    """
    if len(entry.seeds) != 1:
        raise RunError(f"run {entry.run}", "one common seed", f"{len(entry.seeds)}")
    domains = domain_scores(_table(entry, entry.winner), scale)
    revisions = visible_scores(lineage, scale)
    made = len(revisions) - 1
    exceeded = []
    if made > iterations:
        exceeded.append(f"{made} iterations, {iterations} are allowed")
    if entry.cost.hours > hours:
        exceeded.append(f"{entry.cost.hours:.1f} hours, {hours:g} are allowed")
    return EvoBenchRow(
        method=entry.method,
        run=entry.run,
        suite=entry.suite,
        model=entry.model,
        domains=domains,
        overall=overall(domains, scale.weights),
        seed_overall=overall(domain_scores(_table(entry, entry.seeds[0]), scale), scale.weights),
        anytime=anytime_value(best_so_far(revisions), max(made, iterations, 1)),
        iterations=made,
        iteration_budget=iterations,
        steps=entry.cost.optimizer_calls,
        hours=entry.cost.hours,
        frozen=entry.winner.candidate,
        exceeded=tuple(exceeded),
    )


def domain_scores(table: Evaluation, scale: Scale) -> dict[str, float]:
    """Each domain's score from 0 to 100: mean reward, or Pass^k where every attempt must hold."""
    tasks: dict[str, list[str]] = {domain: [] for domain in scale.weights}
    for task in table:
        tasks[scale.domains[task]].append(task)
    empty = [domain for domain, held in tasks.items() if not held]
    if empty:
        raise RunError("held-out suite", "tasks of every weighted domain", f"none of {empty[0]}")
    return {
        domain: PERCENT * _domain(table, held, domain in scale.every_attempt)
        for domain, held in tasks.items()
    }


def visible_scores(lineage: Lineage, scale: Scale) -> list[float]:
    """The visible suite's Overall for every scored revision, the seed first, in order of proposal.

    Only tasks that the seed was scored on count, so that all revisions are on one scale.
    """
    scored = [node for node in lineage if node.evaluation("search")]
    if not scored:
        return []
    first = scored[0].evaluation("search")
    values = []
    for node in scored:
        mine = node.evaluation("search")
        shared = {task: mine[task] for task in first if task in mine}
        seen = {scale.domains[task] for task in shared}
        weights = {domain: w for domain, w in scale.weights.items() if domain in seen}
        inner = Scale(domains=scale.domains, weights=weights, every_attempt=scale.every_attempt)
        values.append(overall(domain_scores(shared, inner), weights))
    return values


def best_so_far(revisions: Sequence[float]) -> list[float]:
    """The scores of the iterations, none below the seed's; the seed's alone where none was made."""
    seed, *made = revisions
    return [max(seed, score) for score in made] or [seed]


def _domain(table: Evaluation, tasks: Sequence[str], every_attempt: bool) -> float:
    if every_attempt:
        return pass_hat(table, tasks, min(table[task].n for task in tasks))
    return math.fsum(table[task].reward for task in tasks) / len(tasks)


def _table(entry: Entry, scored: Scored) -> dict[str, TaskScore]:
    found = {task: score_task(outcomes) for (task, _), outcomes in scored.outcomes.items()}
    table = {task: score for task, score in found.items() if score is not None}
    missing = sorted(set(entry.tasks) - set(table))
    if missing:
        raise RunError(
            f"{scored.candidate} of run {entry.run}",
            f"a valid attempt on each of {len(entry.tasks)} held-out tasks",
            f"none on {len(missing)} of them ({missing[0]} first)",
        )
    return table
