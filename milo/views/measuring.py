"""Figures of the report: harnesses on splits, the winner against the seeds, edits by effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from milo.core.fitness import (
    fitness_on,
    mean_reward,
    paired_difference,
    pass_at_k,
    resolution_rate,
)
from milo.core.lineage import Lineage, Node
from milo.core.population import Population
from milo.views.report import CandidateLine, Comparison, Measured, Step
from milo.views.spending import Coverage, Tally


def measure(node: Node, split: str, tasks: Sequence[str], sums: Tally) -> Measured | None:
    """A harness on a split, over the tasks that it has; None where it has none.

    Without attempts at hand, coverage is that of tasks.
    """
    evaluation = node.evaluation(split)
    known = tuple(task for task in tasks if task in evaluation)
    if not known:
        return None
    fitness = fitness_on(evaluation, known)
    return Measured(
        candidate=node.candidate,
        title=node.change.title,
        tasks=len(known),
        wanted=len(tasks),
        k=max(evaluation[task].n for task in known),
        reward=mean_reward(evaluation, known),
        resolved=resolution_rate(evaluation, known),
        solved_once=pass_at_k(evaluation, known),
        tokens=fitness.tokens,
        latency_s=fitness.latency_s,
        coverage=sums.of(node.harness, split),
    )


def seeds_of(lineage: Lineage) -> tuple[Node, ...]:
    """The seeds: candidates without a parent, whether or not they founded an island."""
    return tuple(node for node in lineage if not node.parents)


def compare(
    population: Population, winner: str, split: str, tasks: Sequence[str], sums: Tally
) -> Comparison:
    """The winner against every seed on one split.

    The best seed is the one with the highest mean on this very split, which is the hardest
    choice for the winner.
    """
    lineage = population.lineage
    won = measure(lineage[winner], split, tasks, sums) if winner else None
    seeds = tuple(m for s in seeds_of(lineage) if (m := measure(s, split, tasks, sums)))
    if won is None or not seeds:
        return Comparison(split=split, winner=won, seeds=seeds)
    best = max(seeds, key=lambda seed: (seed.reward.mean, -seed.tokens))
    a, b = lineage[winner].evaluation(split), lineage[best.candidate].evaluation(split)
    both = [task for task in tasks if task in a and task in b]
    return Comparison(
        split=split,
        winner=won,
        seeds=seeds,
        best_seed=best.candidate,
        difference=paired_difference(a, b, both) if both else None,
        paired_tasks=len(both),
        tokens_ratio=won.tokens / best.tokens if best.tokens else None,
        latency_ratio=won.latency_s / best.latency_s if best.latency_s else None,
    )


def path_steps(
    population: Population, winner: str, patch_of: Callable[[str], str]
) -> tuple[Step, ...]:
    """The edits from seed to winner along first parents, oldest first."""
    lineage = population.lineage
    if not winner:
        return ()
    return tuple(
        _step(lineage, lineage[candidate], patch_of)
        for candidate in lineage.path_from_seed(winner)[1:]
    )


def _step(lineage: Lineage, node: Node, patch_of: Callable[[str], str]) -> Step:
    parent = lineage[node.parents[0]]
    mine, theirs = node.evaluation("search"), parent.evaluation("search")
    both = sorted(mine.keys() & theirs.keys())
    return Step(
        candidate=node.candidate,
        parents=node.parents,
        round=node.round,
        mutator=node.mutator,
        change=node.change,
        gain=node.gain,
        patch_lines=node.patch_lines,
        before=fitness_on(theirs, both) if both else None,
        after=fitness_on(mine, both) if both else None,
        tasks=len(both),
        patch=patch_of(node.candidate),
    )


def candidate_lines(
    population: Population, validation: Sequence[str], sums: Tally
) -> tuple[CandidateLine, ...]:
    """Every candidate in the order of proposal."""
    return tuple(_line(node, validation, sums) for node in population.lineage)


def _line(node: Node, validation: Sequence[str], sums: Tally) -> CandidateLine:
    search = node.evaluation("search")
    seen = measure(node, "validation", validation, sums)
    return CandidateLine(
        candidate=node.candidate,
        island=node.island,
        round=node.round,
        parents=node.parents,
        mutator=node.mutator,
        title=node.change.title,
        verdict=node.verdict,
        reason=node.reason,
        gain=node.gain,
        search=fitness_on(search, sorted(search)) if search else None,
        validation=seen.reward if seen else None,
        coverage=sum(
            (sums.of(node.harness, split) for split in ("search", "validation", "test")),
            Coverage(),
        ),
    )
