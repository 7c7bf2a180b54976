"""The agent orchestrator: a model diagnoses a stalled island and makes at most two moves.

A model with tool calls makes each move by a tool, and is told at once what became of it; one
without answers with a JSON object that holds all of it. Either way the rules referee every move,
and a refused one comes back with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from milo.agents.dialogue import BadCall, Call, Converse, Dialogue, Said, Tool
from milo.agents.population import described
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

Referee = Callable[
    [Sequence[Move], PopulationView, str], tuple[tuple[Move, ...], tuple[Refusal, ...]]
]

TURNS = 5
"""Calls of the model in one consultation, at most."""
REPAIRS = 1
"""How often an answer that can't be read, or holds a refused move, may be given anew."""
CONCLUDE = "conclude"
DIAGNOSES = tuple(str(diagnosis) for diagnosis in Diagnosis)
WORD = {"type": "string"}
MOVES = (
    Tool(
        name="reassign",
        about="an island gets another mutator of the pool",
        parameters={"island": WORD, "mutator": WORD},
    ),
    Tool(
        name="graft",
        about="the best harnesses of both islands become parents of the island's next child",
        parameters={"island": WORD, "donor": WORD},
    ),
    Tool(
        name="speciate",
        about="the subtree of an admitted candidate that is no root becomes a new island",
        parameters={"island": WORD, "root": WORD, "mutator": WORD},
    ),
    Tool(
        name="curriculum",
        about="every island's search set becomes these tasks of the search split",
        parameters={"tasks": {"type": "array", "items": WORD}},
    ),
)
TOOLS = (
    *MOVES,
    Tool(
        name=CONCLUDE,
        about="end the consultation, after the moves, with the diagnosis and why, with figures",
        parameters={"diagnosis": {"type": "string", "enum": list(DIAGNOSES)}, "words": WORD},
    ),
)
SYSTEM = f"""You watch over islands that evolve harnesses of a frozen model. One island has
stalled. Diagnose it against the whole population, and make at most two moves, or none.

Reassign where children are rejected again and again or only vary earlier ones. Graft where another
island solves tasks that this one fails; a pair is not repeated. Speciate where a dominant line
crowds out a subtree that solves other tasks. Curriculum where all islands are near one ceiling:
tasks that few harnesses solve and most fail. Moving nothing is allowed.

Make each move with its tool, then call {CONCLUDE}. Only if you are offered no tools, or can't call
any, answer with one JSON object and nothing else:
{{"diagnosis": {" | ".join(json.dumps(one) for one in DIAGNOSES)},
 "words": "why, with figures",
 "moves": [
  {{"kind": "reassign", "island": "...", "mutator": "a name from the pool"}},
  {{"kind": "graft", "island": "...", "donor": "another island"}},
  {{"kind": "speciate", "island": "...", "root": "...", "mutator": "a name from the pool"}},
  {{"kind": "curriculum", "tasks": ["tasks of the search split"]}}]}}"""


class Unreadable(Exception):
    """The model's answer is not what was asked for."""


@dataclass(slots=True)
class Draft:
    """A consultation in the making. Owned by one `consult` call."""

    diagnosis: Diagnosis | None = None
    words: str = ""
    moves: tuple[Move, ...] = ()
    refused: list[Refusal] = field(default_factory=list)
    repairs: int = REPAIRS


@dataclass(slots=True)
class AgentOrchestrator:
    """Asks a model, and has each move checked by `referee`.

    `converse` calls (and meters) the model; `fallback` answers where the model can't be read;
    `name_island` names the island that a speciation would found.
    """

    converse: Converse
    referee: Referee
    fallback: Orchestrator
    name_island: Callable[[PopulationView], str]

    async def consult(self, view: PopulationView, island: str) -> Consultation:
        """The checked answer; never raises for a refused move."""
        opening = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": described(view, island)},
        ]
        dialogue = Dialogue(self.converse, TOOLS, opening, reads_text=False)
        draft = Draft()
        try:
            for _ in range(TURNS):
                if self._take(await dialogue.ask(), dialogue, draft, view, island):
                    break
            if draft.diagnosis is None:
                raise Unreadable("the model came to no conclusion")
        except ReplayMiss:
            raise
        except (Unreadable, ModelError) as reason:
            answer = await self.fallback.consult(view, island)
            return replace(answer, words=f"{answer.words} (by rules: {reason})")
        return Consultation(
            island=island,
            round=view.topology[island].round,
            diagnosis=draft.diagnosis,
            words=draft.words,
            moves=draft.moves,
            refused=tuple(draft.refused),
        )

    def _take(
        self, said: Said, dialogue: Dialogue, draft: Draft, view: PopulationView, island: str
    ) -> bool:
        """Take a reply into the draft and tell the model what came of it; whether that is all."""
        if not said.calls:
            return self._in_text(said.text, dialogue, draft, view, island)
        before = len(draft.refused)
        results = [(call, self._carried_out(call, draft, view, island)) for call in said.calls]
        refused = len(draft.refused) > before
        if refused and draft.diagnosis is not None and draft.repairs:
            draft.repairs -= 1  # it concluded before it knew: it may say something else
            draft.diagnosis = None
        dialogue.answer(results)
        return draft.diagnosis is not None

    def _carried_out(self, call: Call, draft: Draft, view: PopulationView, island: str) -> str:
        """What a tool call comes to, in words for the model."""
        try:
            if call.problem:
                raise BadCall(call.problem)
            if call.tool == CONCLUDE:
                found, words = diagnosis_in(call.text("diagnosis")), call.text("words")
                draft.diagnosis, draft.words = found, words
                return "Noted."
            move = move_in({**call.arguments, "kind": call.tool}, view, self.name_island)
        except (BadCall, Unreadable) as problem:
            return f"Refused: {problem}"
        accepted, refused = self.referee((*draft.moves, move), view, island)
        if refused:
            draft.refused.append(refused[-1])
            return f"Refused: {refused[-1].reason}"
        draft.moves = accepted
        return "Accepted."

    def _in_text(
        self, text: str, dialogue: Dialogue, draft: Draft, view: PopulationView, island: str
    ) -> bool:
        """Take an answer in text, which stands for all that was said before it."""
        try:
            answer = answer_in(text, view, self.name_island)
        except Unreadable as problem:
            if not draft.repairs:
                raise
            draft.repairs -= 1
            dialogue.tell(f"{problem}. Answer again.")
            return False
        draft.diagnosis, draft.words = answer.diagnosis, answer.words
        draft.moves, refused = self.referee(answer.moves, view, island)
        draft.refused += refused
        if not refused or not draft.repairs:
            return True
        draft.repairs -= 1
        reasons = "; ".join(refusal.reason for refusal in refused)
        dialogue.tell(f"Refused: {reasons}. Answer again.")
        return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer in text, before the referee has seen it."""

    diagnosis: Diagnosis
    words: str
    moves: tuple[Move, ...]


def answer_in(
    text: str, view: PopulationView, name_island: Callable[[PopulationView], str]
) -> Answer:
    """Read the model's JSON; raises `Unreadable` with the reason."""
    match = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        raw = json.loads(match.group(0)) if match else None
    except ValueError as error:
        raise Unreadable(f"the model's answer is no valid JSON: {error}") from error
    if not isinstance(raw, dict):
        raise Unreadable("the model's answer holds no JSON object")
    moves = raw.get("moves", [])
    if not isinstance(moves, list):
        raise Unreadable('"moves" is no list')
    return Answer(
        diagnosis=diagnosis_in(raw.get("diagnosis")),
        words=str(raw.get("words", "")),
        moves=tuple(move_in(move, view, name_island) for move in moves),
    )


def diagnosis_in(value: object) -> Diagnosis:
    """A diagnosis by its name; raises `Unreadable`."""
    try:
        return Diagnosis(str(value))
    except ValueError as error:
        known = ", ".join(DIAGNOSES)
        raise Unreadable(f"unknown diagnosis {value!r}; there are {known}") from error


def move_in(
    raw: object, view: PopulationView, name_island: Callable[[PopulationView], str]
) -> Move:
    """A move of the model's; raises `Unreadable`. Whether it is possible is the referee's."""
    if not isinstance(raw, Mapping):
        raise Unreadable("a move is no JSON object")
    match raw.get("kind"):
        case "reassign":
            return Reassign(island=_word(raw, "island"), mutator=_word(raw, "mutator"))
        case "graft":
            return _graft(_word(raw, "island"), _word(raw, "donor"), view)
        case "speciate":
            named = raw.get("new_island")
            return Speciate(
                island=_word(raw, "island"),
                root=_word(raw, "root"),
                mutator=_word(raw, "mutator"),
                new_island=named if isinstance(named, str) and named else name_island(view),
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
