"""What came of the orchestrator's moves, told from the candidates that followed them."""

from __future__ import annotations

from collections.abc import Sequence

from milo.core.events import Consulted, Verdict
from milo.core.lineage import Node
from milo.core.moves import Curriculum, Graft, Move, Reassign, Speciate
from milo.core.population import Population
from milo.views import text
from milo.views.report import ConsultationLine, MoveOutcome


def consultation_lines(
    population: Population, validation: Sequence[str]
) -> tuple[ConsultationLine, ...]:
    """Every consultation in order, each move with its outcome."""
    return tuple(_line(population, c, validation) for c in population.consultations)


def _line(
    population: Population, consulted: Consulted, validation: Sequence[str]
) -> ConsultationLine:
    answer = consulted.consultation
    return ConsultationLine(
        island=answer.island,
        round=answer.round,
        diagnosis=str(answer.diagnosis),
        words=answer.words,
        moves=tuple(_outcome(population, move, answer.round, validation) for move in answer.moves),
        refused=tuple(f"{text.move_words(r.move)}: {r.reason}" for r in answer.refused),
    )


def _outcome(
    population: Population, move: Move, asked: int, validation: Sequence[str]
) -> MoveOutcome:
    applied: dict[str, int] = {}
    for island, round_, made in population.topology.moves:
        if made == move and (isinstance(move, Curriculum) or round_ >= asked):
            applied.setdefault(island, round_)
    words = (
        _aftermath(population, move, applied, validation) if applied else _why_not(population, move)
    )
    return MoveOutcome(
        kind=move.kind, words=text.move_words(move), applied=bool(applied), outcome=words
    )


def _why_not(population: Population, move: Move) -> str:
    if any(made == move for _, _, made in population.topology.voided):
        return "could not take effect: what it needs was no longer so"
    return "never took effect: the run ended first"


def _aftermath(
    population: Population, move: Move, applied: dict[str, int], validation: Sequence[str]
) -> str:
    match move:
        case Reassign():
            return _after_reassign(population, move, applied[move.island], validation)
        case Graft():
            return _after_graft(population, move, applied[move.island])
        case Speciate():
            return _after_speciate(population, move, validation)
        case Curriculum():
            return _after_curriculum(population, applied)


def _after_reassign(
    population: Population, move: Reassign, since: int, validation: Sequence[str]
) -> str:
    mine = population.lineage.of_island(move.island)
    before = [node for node in mine if node.round < since]
    after = [node for node in mine if node.round >= since and node.parents]
    return f"{_harvest(after)}; {_best_then(before, after, validation)}"


def _after_graft(population: Population, move: Graft, since: int) -> str:
    for node in population.lineage.of_island(move.island):
        if node.round >= since and len(node.parents) > 1 and move.donor_candidate in node.parents:
            return f"the grafted child {node.candidate} {_fate(node)}"
    return "no grafted child was made"


def _after_speciate(population: Population, move: Speciate, validation: Sequence[str]) -> str:
    state = population.topology.islands.get(move.new_island)
    if state is None:
        return f"island {move.new_island} was never founded"
    founders = [population.lineage[member] for member in state.members]
    born = [n for n in population.lineage.of_island(move.new_island) if n.parents]
    old = [node for node in founders if node.island != move.new_island]
    return (
        f"founded with {text.plural(len(old), 'member')}; {_harvest(born)}; "
        f"{_best_then(old, born, validation)}"
    )


def _after_curriculum(population: Population, applied: dict[str, int]) -> str:
    born = [
        node
        for island, since in applied.items()
        for node in population.lineage.of_island(island)
        if node.round >= since and node.parents
    ]
    return f"took effect on {', '.join(applied)}; {_harvest(born)}"


def _harvest(nodes: Sequence[Node]) -> str:
    if not nodes:
        return "no child since"
    admitted = sum(node.verdict is Verdict.ADMITTED for node in nodes)
    children = "1 child" if len(nodes) == 1 else f"{len(nodes)} children"
    return f"{admitted} of {children} admitted since"


def _best_then(before: Sequence[Node], after: Sequence[Node], validation: Sequence[str]) -> str:
    old, new = _best(before, validation), _best(after, validation)
    if new is None:
        return "no later child was validated"
    if old is None:
        return f"best validation {text.percent(new)} %"
    verb = "improved" if new > old else "did not improve"
    return f"best validation {verb}: {text.percent(old)} % before, {text.percent(new)} % since"


def _best(nodes: Sequence[Node], validation: Sequence[str]) -> float | None:
    known = [fitness for n in nodes if (fitness := n.fitness("validation", validation))]
    return max((fitness.accuracy for fitness in known), default=None)


def _fate(node: Node) -> str:
    if node.verdict is None:
        return "has no verdict: the run ended first"
    gain = f" with gain {node.gain:.4f}" if node.verdict is Verdict.ADMITTED else ""
    reason = f": {node.reason}" if node.reason else ""
    return f"was {node.verdict}{gain}{reason}"
