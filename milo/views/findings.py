"""What a tracker keeps of a run beside its curves: a table of candidates, and the best harness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from milo.core.errors import RecordError
from milo.core.fitness import mean_reward
from milo.core.lineage import Node
from milo.core.population import Population
from milo.core.tree import FileTree
from milo.store import RunReader
from milo.views.text import json_ready

COLUMNS = (
    "candidate",
    "island",
    "round",
    "parents",
    "mutator",
    "edit",
    "verdict",
    "reason",
    "gain",
    "support",
    "search accuracy",
    "tokens",
    "seconds",
    "validation accuracy",
    "validation ±",
    "harness",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """`rows` have a cell per column of `COLUMNS`, None where nothing is known; `best` is the
    winner, or the best validated so far, "" where there is none, `tree` its files, and `lineage`
    how it came about, as JSON-ready data."""

    rows: tuple[tuple[object, ...], ...]
    best: str = ""
    tree: FileTree | None = None
    lineage: Mapping[str, object] | None = None


def findings_of(reader: RunReader) -> Findings:
    """The findings of a run, finished or not."""
    population = reader.population()
    validation = population.started.validation if population.started else ()
    rows = tuple(_row(population, node, validation) for node in population.lineage)
    best = best_candidate(population)
    if not best:
        return Findings(rows=rows)
    try:
        tree = reader.harnesses.tree(best)
    except RecordError:  # a killed writer may have left the journal ahead of the harnesses
        return Findings(rows=rows)
    return Findings(rows=rows, best=best, tree=tree, lineage=lineage_of(population, best))


def best_candidate(population: Population) -> str:
    """The frozen winner; before that the best validated member, ties by tokens."""
    if population.winner is not None:
        return population.winner.candidate
    tasks = population.started.validation if population.started else ()
    known = [
        (fitness, node.candidate)
        for node in population.lineage
        if node.verdict is not None
        and node.verdict.is_member
        and (fitness := node.fitness("validation", tasks)) is not None
    ]
    return max(known, key=lambda k: (k[0].accuracy, -k[0].tokens))[1] if known else ""


def lineage_of(population: Population, candidate: str) -> dict[str, object]:
    """A candidate's way from its seed, edit by edit, and its scores by split."""
    lineage = population.lineage
    path = [lineage[name] for name in lineage.path_from_seed(candidate)]
    node = path[-1]
    scores = {
        split: json_ready(mean_reward(evaluation, tuple(evaluation)))
        for split in ("search", "validation", "test")
        if (evaluation := node.evaluation(split))
    }
    started = population.started
    return {
        "candidate": candidate,
        "harness": node.harness,
        "island": node.island,
        "round": node.round,
        "model": started.model if started else "",
        "is_winner": population.winner is not None,
        "scores": scores,
        "path": [_edit(one) for one in path],
    }


def _edit(node: Node) -> dict[str, object]:
    return {
        "candidate": node.candidate,
        "parents": list(node.parents),
        "mutator": node.mutator,
        "edit": node.change.title,
        "gain": json_ready(node.gain),
        "harness": node.harness,
    }


def _row(population: Population, node: Node, validation: tuple[str, ...]) -> tuple[object, ...]:
    island = population.topology.islands.get(node.island)
    search = node.fitness("search", island.search) if island else None
    seen = node.evaluation("validation")
    known = tuple(task for task in validation if task in seen)
    rate = mean_reward(seen, known) if known else None
    return (
        node.candidate,
        node.island,
        node.round,
        " + ".join(node.parents),
        node.mutator,
        node.change.title,
        str(node.verdict) if node.verdict else "pending",
        node.reason,
        json_ready(node.gain),
        json_ready(node.support),
        search.accuracy if search else None,
        search.tokens if search else None,
        search.latency_s if search else None,
        rate.mean if rate else None,
        json_ready(rate.half_width) if rate else None,
        node.harness[:16],
    )
