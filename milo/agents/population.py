"""The population in words: what the orchestrator's model is shown, within bounds.

Islands with their curves, latest candidates and edits by what they touched; the mutators' record;
pass rates by task; what is left of the budget; earlier moves and what they led to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from milo.agents.brief_text import cut
from milo.agents.population_figures import curve, effect, matrix, records, touched
from milo.core.events import Verdict
from milo.core.fitness import Fitness
from milo.core.lineage import Node
from milo.core.moves import Move
from milo.core.ports import PopulationView
from milo.core.topology import IslandState, best_member

LATEST = 8
MAX_TASKS = 60
WORDS_CHARS = 240


def described(view: PopulationView, island: str) -> str:
    """Everything that the orchestrator's model is shown about a stalled island."""
    parts = [f"Island {island} is stalled (patience {view.patience})."]
    parts += [island_text(view, state) for state in view.topology.islands.values()]
    parts.append("Mutator pool: " + ", ".join(view.pool))
    parts.append("Mutators' record:\n" + "\n".join(records(view)))
    parts.append("\n".join(matrix(view, MAX_TASKS)))
    parts.append("Search split: " + _some(view.search_split))
    parts.append("\n".join(_left(view, island)))
    parts.append("Earlier moves:\n" + ("\n".join(_past(view)) or "none"))
    return "\n\n".join(parts)


def island_text(view: PopulationView, state: IslandState) -> str:
    """One island: its standing, its best, its curve, its edits, its latest candidates."""
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
    lines.append(f"Searches on set {state.epoch} of {len(state.search)} tasks.")
    lines.append("Best search accuracy by round: " + (curve(view, state) or "nothing scored"))
    lines += touched(view, state)
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
    return f"Best {best} solves: {_some(good) or 'nothing'}"


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


def _left(view: PopulationView, island: str) -> Iterator[str]:
    """What is left of the budget."""
    attempts = "unlimited" if view.attempts_left is None else str(view.attempts_left)
    yield f"Attempts left: {attempts}; {view.k} attempts are made per task."
    bounded = {name: value for name, value in view.left.items() if value is not None}
    if "rounds" in bounded:
        bounded["rounds"] -= view.topology[island].round
    told = [f"{value:,.6g} {name}" for name, value in bounded.items()]
    yield f"Left beside: {', '.join(told)}." if told else "Nothing else is limited."


def _past(view: PopulationView) -> Iterator[str]:
    for answer in view.past[-LATEST:]:
        words = cut(" ".join(answer.words.split()), WORDS_CHARS)
        yield f"- {answer.island}, round {answer.round}: {answer.diagnosis}: {words}"
        for move in answer.moves:
            yield f"  - {told(move)}: {'; '.join(effect(view, move))}"
        for refusal in answer.refused:
            yield f"  - {told(refusal.move)}: refused, {refusal.reason}"
        if not answer.moves:
            yield "  - no move"


def told(move: Move) -> str:
    """A move in a few words."""
    match move.kind:
        case "reassign":
            return f"reassign {move.island} to {move.mutator}"
        case "graft":
            return f"graft {move.donor_candidate or 'nothing'} of {move.donor} into {move.island}"
        case "speciate":
            return f"speciate {move.root} of {move.island} as {move.new_island}"
        case "curriculum":
            return f"curriculum {move.epoch} of {len(move.tasks)} tasks"


def _some(tasks: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(tasks) - MAX_TASKS} more" if len(tasks) > MAX_TASKS else ""
    return ", ".join(tasks[:MAX_TASKS]) + more
