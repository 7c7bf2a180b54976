"""The agent orchestrator: a model diagnoses a stalled island and proposes at most two moves."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from milo.agents.population import described
from milo.core.attempt import Usage
from milo.core.errors import ModelError, ReplayMiss
from milo.core.moves import (
    Consultation,
    Curriculum,
    Diagnosis,
    Graft,
    Move,
    Reassign,
    Refusal,
    Speciate,
)
from milo.core.ports import Orchestrator, PopulationView
from milo.core.topology import best_member

Complete = Callable[[Sequence[Mapping[str, object]]], Awaitable[tuple[str, Usage]]]
Referee = Callable[
    [Sequence[Move], PopulationView, str], tuple[tuple[Move, ...], tuple[Refusal, ...]]
]

SYSTEM = """You watch over islands that evolve harnesses of a frozen model. One island has
stalled. Diagnose it against the whole population and propose at most two moves. Answer with one
JSON object and nothing else:
{"diagnosis": "dry mutator" | "exhausted lineage" | "crowded-out niche" |
 "whole-population plateau" | "healthy",
 "words": "why, with figures",
 "moves": [
  {"kind": "reassign", "island": "...", "mutator": "a name from the pool"},
  {"kind": "graft", "island": "...", "donor": "another island"},
  {"kind": "speciate", "island": "...", "root": "an admitted candidate that is no root",
   "mutator": "a name from the pool", "new_island": "a new name"},
  {"kind": "curriculum", "tasks": ["tasks of the search split"]}]}
Reassign where children are rejected again and again or only vary earlier ones. Graft where another
island solves tasks that this one fails; a pair is not repeated. Speciate where a dominant line
crowds out a subtree that solves other tasks. Curriculum where all islands are near one ceiling:
tasks that few harnesses solve and most fail. Moving nothing is allowed."""


class Unreadable(Exception):
    """The model's answer is not the JSON object that was asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A parsed answer, before the referee has seen it."""

    diagnosis: Diagnosis
    words: str
    moves: tuple[Move, ...]


@dataclass(slots=True)
class AgentOrchestrator:
    """Asks a model, has each move checked by `referee`, and asks once more where one is refused.

    `complete` calls (and meters) the model; `fallback` answers where the model can't be read.
    """

    complete: Complete
    referee: Referee
    fallback: Orchestrator

    async def consult(self, view: PopulationView, island: str) -> Consultation:
        """The checked answer; never raises for a refused move."""
        messages: list[Mapping[str, object]] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": described(view, island)},
        ]
        try:
            first = await self._ask(messages, view, island)
            if not first.refused:
                return first
            reasons = "; ".join(refusal.reason for refusal in first.refused)
            messages.append({"role": "user", "content": f"Refused: {reasons}. Answer again."})
            second = await self._ask(messages, view, island)
        except ReplayMiss:
            raise
        except (Unreadable, ModelError) as reason:
            answer = await self.fallback.consult(view, island)
            return replace(answer, words=f"{answer.words} (by rules: {reason})")
        return replace(second, refused=(*first.refused, *second.refused))

    async def _ask(
        self, messages: list[Mapping[str, object]], view: PopulationView, island: str
    ) -> Consultation:
        text, _ = await self.complete(messages)
        messages.append({"role": "assistant", "content": text})
        return self._checked(parse_answer(text, view), view, island)

    def _checked(self, answer: Answer, view: PopulationView, island: str) -> Consultation:
        accepted, refused = self.referee(answer.moves, view, island)
        return Consultation(
            island=island,
            round=view.topology[island].round,
            diagnosis=answer.diagnosis,
            words=answer.words,
            moves=accepted,
            refused=refused,
        )


def parse_answer(text: str, view: PopulationView) -> Answer:
    """Read the model's JSON; raises `Unreadable` with the reason."""
    match = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        raw = json.loads(match.group(0)) if match else None
    except ValueError as error:
        raise Unreadable(f"the model's answer is no valid JSON: {error}") from error
    if not isinstance(raw, dict):
        raise Unreadable("the model's answer holds no JSON object")
    try:
        diagnosis = Diagnosis(str(raw.get("diagnosis")))
    except ValueError as error:
        raise Unreadable(f"unknown diagnosis {raw.get('diagnosis')!r}") from error
    moves = raw.get("moves", [])
    if not isinstance(moves, list):
        raise Unreadable('"moves" is no list')
    return Answer(
        diagnosis=diagnosis,
        words=str(raw.get("words", "")),
        moves=tuple(_move(move, view) for move in moves),
    )


def _move(raw: object, view: PopulationView) -> Move:
    if not isinstance(raw, dict):
        raise Unreadable("a move is no JSON object")
    match raw.get("kind"):
        case "reassign":
            return Reassign(island=_word(raw, "island"), mutator=_word(raw, "mutator"))
        case "graft":
            return _graft(_word(raw, "island"), _word(raw, "donor"), view)
        case "speciate":
            return Speciate(
                island=_word(raw, "island"),
                root=_word(raw, "root"),
                mutator=_word(raw, "mutator"),
                new_island=_word(raw, "new_island"),
            )
        case "curriculum":
            return Curriculum(tasks=_words(raw, "tasks"), epoch=_next_epoch(view))
        case other:
            raise Unreadable(f"unknown kind of move {other!r}")


def _graft(island: str, donor: str, view: PopulationView) -> Graft:
    """A graft from the donor's best member; an unknown donor is left to the referee."""
    state = view.topology.islands.get(donor)
    best = best_member(state, view.lineage) if state and state.members else ""
    return Graft(island=island, donor=donor, donor_candidate=best)


def _next_epoch(view: PopulationView) -> int:
    return 1 + max((state.epoch for state in view.topology.islands.values()), default=0)


def _word(raw: Mapping[str, object], key: str) -> str:
    value = raw.get(key)
    if not isinstance(value, str):
        raise Unreadable(f'a move lacks "{key}"')
    return value


def _words(raw: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = raw.get(key)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Unreadable(f'a move lacks "{key}" as a list')
    return tuple(value)
