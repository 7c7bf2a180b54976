"""The journal's own word of a run, in the shape in which the page tells it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from milo.core.attempt import Usage
from milo.core.lineage import Node
from milo.core.population import Population
from milo.core.topology import IslandState
from milo.views.text import json_ready

SCORE = ("n", "reward", "resolved", "tokens", "latency_s")


def plain_island(state: IslandState) -> dict[str, Any]:
    return {field.name: json_ready(getattr(state, field.name)) for field in fields(IslandState)}


def plain_node(node: Node, population: Population) -> dict[str, Any]:
    topology, started = population.topology, population.started
    island = topology.islands.get(node.island)
    tasks = island.search if island else started.search if started else ()
    fitness = node.fitness("search", tasks)
    verdict = {
        "island": node.island,
        "candidate": node.candidate,
        "verdict": str(node.verdict),
        "reason": node.reason,
        "gain": node.gain,
        "support": node.support,
    }
    return {
        "candidate": node.candidate,
        "island": node.island,
        "round": node.round,
        "parents": list(node.parents),
        "harness": node.harness,
        "mutator": node.mutator,
        "title": node.change.title,
        "usage": [getattr(node.usage, field.name) for field in fields(Usage)],
        "patch_lines": node.patch_lines,
        "tries": node.tries,
        "verdict": verdict if node.verdict else None,
        "scores": {
            split: {task: [getattr(score, name) for name in SCORE] for task, score in of.items()}
            for split, of in node.scores.items()
            if of
        },
        "fitness": list(fitness) if fitness else None,
    }


def plain_run(population: Population) -> dict[str, Any]:
    started = population.started
    return {
        "name": started.name if started else None,
        "model": started.model if started else None,
        "resumes": population.resumes,
        "winner": json_ready(population.winner),
        "ended": json_ready(population.ended),
    }


def state_of(population: Population) -> dict[str, Any]:
    return {
        "run": plain_run(population),
        "islands": [plain_island(s) for s in population.topology.islands.values()],
        "candidates": [plain_node(node, population) for node in population.lineage],
        "consultations": [json_ready(c.consultation) for c in population.consultations],
        "moves": [[i, r, json_ready(m)] for i, r, m in population.topology.moves],
        "voided": [[i, r, json_ready(m)] for i, r, m in population.topology.voided],
    }
