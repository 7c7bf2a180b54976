"""The rule-based orchestrator: diagnoses from the records, at most two checked moves (SPEC §3.3).

It runs where no model is configured. It stands in this room and not among the agents because it
decides by the same diagnoses and referee that check an agent's answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from milo.core.events import Verdict
from milo.core.moves import Consultation, Diagnosis, Graft, Move, Reassign, Speciate
from milo.core.ports import PopulationView
from milo.core.topology import best_member
from milo.search.curriculum import propose_curriculum
from milo.search.diagnosis import Finding, diagnose
from milo.search.referee import check_answer, next_island


class RulesOrchestrator:
    """Implements `ports.Orchestrator`; holds no state and makes no random choice."""

    async def consult(self, view: PopulationView, island: str) -> Consultation:
        """The checked answer for a stalled island; says why where no move is made."""
        findings = diagnose(view, island)
        proposed = {f.diagnosis: _move_for(f, view, island) for f in findings}
        moves = [move for move in proposed.values() if move is not None]
        accepted, refused = check_answer(moves, view, island)
        state = view.topology[island]
        return Consultation(
            island=island,
            round=state.round,
            diagnosis=_main_diagnosis(proposed, accepted),
            words="; ".join(
                [
                    *_in_words(findings, proposed, accepted, state.stall),
                    *(f"{r.move.kind} was refused: {r.reason}" for r in refused),
                ]
            ),
            moves=accepted,
            refused=refused,
        )


def _main_diagnosis(
    proposed: Mapping[Diagnosis, Move | None], accepted: tuple[Move, ...]
) -> Diagnosis:
    """The diagnosis behind the first accepted move, or else the first that holds."""
    for diagnosis, move in proposed.items():
        if move is not None and move in accepted:
            return diagnosis
    return next(iter(proposed), Diagnosis.HEALTHY)


def _move_for(finding: Finding, view: PopulationView, island: str) -> Move | None:
    makers: Mapping[Diagnosis, Callable[[Finding, PopulationView, str], Move | None]] = {
        Diagnosis.EXHAUSTED_LINEAGE: _graft,
        Diagnosis.DRY_MUTATOR: _reassign,
        Diagnosis.CROWDED_OUT_NICHE: _speciate,
        Diagnosis.PLATEAU: lambda _f, view, _i: propose_curriculum(view),
    }
    return makers[finding.diagnosis](finding, view, island)


def _graft(finding: Finding, view: PopulationView, island: str) -> Graft:
    donor = view.topology[finding.donor]
    return Graft(
        island=island, donor=donor.island, donor_candidate=best_member(donor, view.lineage)
    )


def _reassign(_: Finding, view: PopulationView, island: str) -> Reassign | None:
    mutator = best_other_mutator(view, view.topology[island].mutator)
    return Reassign(island=island, mutator=mutator) if mutator else None


def _speciate(finding: Finding, view: PopulationView, island: str) -> Speciate:
    current = view.topology[island].mutator
    return Speciate(
        island=island,
        root=finding.root,
        mutator=best_other_mutator(view, current) or current,
        new_island=next_island(view),
    )


def best_other_mutator(view: PopulationView, current: str) -> str:
    """The pool's mutator to try instead; "" where there is no other.

    First those that no open island has, then by their share of admitted children with one win and
    one loss added (so that an untried one stands at one half), then by pool order.
    """
    assigned = {s.mutator for s in view.topology.islands.values() if not s.closed}
    others = [mutator for mutator in view.pool if mutator != current]
    return min(others, key=lambda m: (m in assigned, -_track_record(view, m)), default="")


def _track_record(view: PopulationView, mutator: str) -> float:
    made = [n for n in view.lineage if n.parents and n.mutator == mutator and n.verdict]
    won = sum(node.verdict is Verdict.ADMITTED for node in made)
    return (won + 1) / (len(made) + 2)


def _in_words(
    findings: tuple[Finding, ...],
    proposed: Mapping[Diagnosis, Move | None],
    accepted: tuple[Move, ...],
    stall: int,
) -> list[str]:
    start = f"no better validation accuracy for {stall} rounds"
    if not findings:
        return [start, "no signal of a dry mutator, an exhausted lineage, a niche or a plateau"]
    parts = [start, *(f"{f.diagnosis}: {f.words}" for f in findings)]
    without = [d.value for d, move in proposed.items() if move is None]
    if without:
        parts.append(f"nothing can be done about {', '.join(without)} (no move is open)")
    if not accepted:
        parts.append("so no move is made")
    return parts
