"""The population in words: what the orchestrator's model is shown, within bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from milo.core.events import Verdict
from milo.core.fitness import Fitness
from milo.core.lineage import Node
from milo.core.ports import PopulationView
from milo.core.topology import IslandState, best_member

LATEST = 8
MAX_TASKS = 60


def described(view: PopulationView, island: str) -> str:
    """Islands, their members, latest candidates and per-task rates, the pool and earlier moves."""
    parts = [f"Island {island} is stalled (patience {view.patience})."]
    parts += [island_text(view, state) for state in view.topology.islands.values()]
    parts.append("Mutator pool: " + ", ".join(view.pool))
    parts.append("Search split: " + ", ".join(view.search_split[:MAX_TASKS]))
    left = "unlimited" if view.attempts_left is None else str(view.attempts_left)
    parts.append(f"Attempts left: {left}; {view.k} attempts are made per task.")
    parts.append("Earlier moves:\n" + ("\n".join(_past(view)) or "none"))
    return "\n\n".join(parts)


def island_text(view: PopulationView, state: IslandState) -> str:
    """One island: its standing, its best, its latest candidates."""
    head = (
        f"## Island {state.island}: mutator {state.mutator}, round {state.round}, "
        f"stalled for {state.stall} rounds, best validation accuracy {state.best_validation:.3f}"
    )
    lines = [head + (f", closed: {state.closed}" if state.closed else "")]
    if state.niche:
        lines.append(f"Niche: {state.niche}")
    members = ", ".join(_member(view, state, name) for name in state.members)
    lines.append(f"Members: {members}")
    if state.members:
        lines.append(_solved(view, state))
    made = view.lineage.of_island(state.island)
    lines += [_candidate(node, state) for node in made[-LATEST:]]
    return "\n".join(lines)


def _member(view: PopulationView, state: IslandState, name: str) -> str:
    return f"{name} ({_figures(view.lineage[name].fitness('search', state.search))})"


def _figures(fitness: Fitness | None) -> str:
    if fitness is None:
        return "not yet scored"
    return f"accuracy {fitness.accuracy:.3f}, {fitness.tokens:.0f} tokens"


def _solved(view: PopulationView, state: IslandState) -> str:
    best = best_member(state, view.lineage)
    rates = view.lineage[best].evaluation("search")
    good = [task for task in state.search if task in rates and rates[task].reward >= 0.5]
    return f"Best {best} solves: {', '.join(good[:MAX_TASKS]) or 'nothing'}"


def _candidate(node: Node, state: IslandState) -> str:
    verdict = node.verdict or "unjudged"
    figures = _figures(node.fitness("search", state.search))
    reason = f" ({node.reason})" if node.verdict is not Verdict.SEED and node.reason else ""
    return (
        f"- {node.candidate}, round {node.round}, {verdict}{reason}: {node.change.title}; {figures}"
        f"{_signs(node, state)}"
    )


def _signs(node: Node, state: IslandState) -> str:
    """On how many tasks attempts bear signs of reward hacking, by sign."""
    scores = node.evaluation("search")
    counted = Counter(f for task in state.search if task in scores for f in scores[task].flags)
    told = ", ".join(f"{flag} on {n} tasks" for flag, n in sorted(counted.items()))
    return f"; signs of reward hacking: {told}" if told else ""


def _past(view: PopulationView) -> Iterator[str]:
    for answer in view.past[-LATEST:]:
        moves = "; ".join(repr(move) for move in answer.moves) or "no move"
        yield f"- {answer.island}, round {answer.round}: {answer.diagnosis}: {moves}"
