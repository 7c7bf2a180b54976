"""The agent orchestrator: its answers are parsed, refereed, repaired once, or left to the rules."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from agents_scene import calls, said

from milo.agents.orchestrator import TURNS, AgentOrchestrator
from milo.agents.population import described
from milo.core.attempt import Usage
from milo.core.errors import ModelError
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Change,
    IslandFounded,
    Verdict,
)
from milo.core.fitness import TaskScore
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
from milo.core.population import Population
from milo.core.ports import PopulationView


def population() -> PopulationView:
    fold = Population()
    for number, reward in ((1, 0.0), (2, 1.0)):
        island, name = f"i{number}", f"c{number}"
        fold.apply(
            CandidateProposed(
                island=island,
                candidate=name,
                round=0,
                parents=(),
                harness=name * 32,
                mutator="operators",
                change=Change(title="seed"),
            )
        )
        fold.apply(
            IslandFounded(
                island=island, mutator="operators", root=name, members=(name,), search=("t1",)
            )
        )
        score = TaskScore(n=1, reward=reward, resolved=int(reward), tokens=100.0, latency_s=1.0)
        fold.apply(
            CandidateScored(island=island, candidate=name, split="search", scores={"t1": score})
        )
        fold.apply(
            CandidateJudged(
                island=island, candidate=name, round=0, verdict=Verdict.SEED, reason="seed"
            )
        )
    return PopulationView(
        topology=fold.topology,
        lineage=fold.lineage,
        pool=("operators", "operators-prompt"),
        search_split=("t1", "t2"),
        attempts_left=100,
        k=1,
        patience=2,
        past=(Consultation(island="i1", round=0, diagnosis=Diagnosis.HEALTHY, words="w"),),
    )


@dataclass
class Model:
    answers: list[str | Mapping[str, object]]
    asked: list[list[Mapping[str, object]]] = field(default_factory=list)
    tools: list[Sequence[Mapping[str, object]]] = field(default_factory=list)

    async def __call__(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]]
    ) -> tuple[Mapping[str, object], Usage]:
        self.asked.append(list(messages))
        self.tools.append(tools)
        return said(self.answers.pop(0)), Usage(output=7, calls=1)


class Rules:
    async def consult(self, view: PopulationView, island: str) -> Consultation:
        return Consultation(
            island=island, round=0, diagnosis=Diagnosis.DRY_MUTATOR, words="by rule"
        )


def no_reassign(
    moves: Sequence[Move], view: PopulationView, island: str
) -> tuple[tuple[Move, ...], tuple[Refusal, ...]]:
    """Refuses reassignments, and whatever comes after two moves."""
    accepted, refused = [], []
    for move in moves:
        if isinstance(move, Reassign):
            refused.append(Refusal(move=move, reason="it has that mutator"))
        elif len(accepted) == 2:
            refused.append(Refusal(move=move, reason="at most 2 moves are made at once"))
        else:
            accepted.append(move)
    return tuple(accepted), tuple(refused)


def answer(*moves: Mapping[str, object], diagnosis: str = "exhausted lineage") -> str:
    body = json.dumps({"diagnosis": diagnosis, "words": "why", "moves": moves})
    return f"I think:\n{body}"


GRAFT = {"kind": "graft", "island": "i1", "donor": "i2"}
REASSIGN = {"kind": "reassign", "island": "i1", "mutator": "operators"}
SPECIATE = {
    "kind": "speciate",
    "island": "i1",
    "root": "c1",
    "mutator": "operators",
    "new_island": "i3",
}


def consult(*answers: str | Mapping[str, object]) -> tuple[Consultation, Model]:
    model = Model(list(answers))
    orchestrator = AgentOrchestrator(model, no_reassign, Rules(), lambda view: "i3")
    found = asyncio.run(orchestrator.consult(population(), "i1"))
    return found, model


def test_a_graft_takes_the_donor_islands_best_member() -> None:
    found, _ = consult(answer(GRAFT))
    assert found.moves == (Graft(island="i1", donor="i2", donor_candidate="c2"),)
    assert found.diagnosis is Diagnosis.EXHAUSTED_LINEAGE and found.words == "why"


def test_every_kind_of_move_is_read() -> None:
    found, _ = consult(answer(SPECIATE, {"kind": "curriculum", "tasks": ["t2"]}))
    assert found.moves == (
        Speciate(island="i1", root="c1", mutator="operators", new_island="i3"),
        Curriculum(tasks=("t2",), epoch=1),
    )


def test_a_refused_move_goes_back_once_and_stays_on_record() -> None:
    found, model = consult(answer(REASSIGN), answer(GRAFT))
    assert [refusal.reason for refusal in found.refused] == ["it has that mutator"]
    assert len(found.moves) == 1
    assert "it has that mutator" in str(model.asked[1][-1]["content"])
    found, _ = consult(answer(REASSIGN), answer(REASSIGN, GRAFT))
    assert len(found.refused) == 2 and len(found.moves) == 1


CONCLUDED = ("conclude", {"diagnosis": "exhausted lineage", "words": "none admitted in 3"})
BY_TOOL = ("graft", {"island": "i1", "donor": "i2"})


def test_moves_by_tools_are_taken_and_the_diagnosis_is_kept() -> None:
    found, model = consult(calls(BY_TOOL, CONCLUDED))
    assert found.moves == (Graft(island="i1", donor="i2", donor_candidate="c2"),)
    assert found.diagnosis is Diagnosis.EXHAUSTED_LINEAGE
    assert found.words == "none admitted in 3" and not found.refused
    names = [tool["function"]["name"] for tool in model.tools[0]]  # type: ignore[index]
    assert names == ["reassign", "graft", "speciate", "curriculum", "conclude"]


def test_a_refused_tool_call_comes_back_with_the_reason_before_the_end() -> None:
    reassign = ("reassign", {"island": "i1", "mutator": "operators"})
    found, model = consult(calls(reassign, BY_TOOL), calls(CONCLUDED))
    told = [str(message["content"]) for message in model.asked[1][-2:]]
    assert told == ["Refused: it has that mutator", "Accepted."]
    assert [refusal.reason for refusal in found.refused] == ["it has that mutator"]
    assert len(found.moves) == 1


def test_who_concludes_beside_a_refused_move_may_conclude_again_once() -> None:
    reassign = ("reassign", {"island": "i1", "mutator": "operators"})
    again = ("conclude", {"diagnosis": "healthy", "words": "nothing can be done"})
    found, model = consult(calls(reassign, CONCLUDED), calls(reassign, again))
    assert found.diagnosis is Diagnosis.HEALTHY and not found.moves
    assert len(found.refused) == 2 and len(model.asked) == 2


def test_a_speciation_by_tool_is_given_the_next_islands_name() -> None:
    speciate = {"island": "i1", "root": "c1", "mutator": "operators"}
    found, _ = consult(calls(("speciate", speciate), CONCLUDED))
    assert found.moves == (Speciate(island="i1", root="c1", mutator="operators", new_island="i3"),)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (("pray", {}), "unknown kind of move 'pray'"),
        (("graft", {"island": "i1"}), 'a move lacks "donor"'),
        (("curriculum", {"tasks": "t1"}), '"tasks" as a list'),
        (("conclude", {"diagnosis": "tired", "words": "w"}), "unknown diagnosis 'tired'"),
        (("conclude", {"diagnosis": "healthy"}), 'needs "words" as a string'),
    ],
)
def test_a_tool_call_that_cant_be_read_comes_back(
    call: tuple[str, Mapping[str, object]], reason: str
) -> None:
    found, model = consult(calls(call), calls(CONCLUDED))
    assert reason in str(model.asked[1][-1]["content"])
    assert found.diagnosis is Diagnosis.EXHAUSTED_LINEAGE and not found.refused


def test_a_model_that_never_concludes_leaves_it_to_the_rules() -> None:
    found, model = consult(*[calls(BY_TOOL)] * TURNS)
    assert len(model.asked) == TURNS
    assert "(by rules: the model came to no conclusion)" in found.words


def test_a_third_move_is_refused() -> None:
    found, _ = consult(answer(GRAFT, SPECIATE, GRAFT), answer(GRAFT))
    assert "at most 2" in found.refused[0].reason


@pytest.mark.parametrize(
    "text",
    [
        "no idea",
        "{",
        "{'a': 1}",
        answer(diagnosis="tired"),
        answer({"kind": "pray"}),
        answer({"kind": "graft", "island": "i1"}),
        answer({"kind": "curriculum", "tasks": "t1"}),
        '{"diagnosis": "healthy", "moves": 3}',
        '{"diagnosis": "healthy", "moves": [3]}',
    ],
)
def test_an_unreadable_answer_leaves_it_to_the_rules(text: str) -> None:
    found, model = consult(text, text)
    assert found.diagnosis is Diagnosis.DRY_MUTATOR
    assert found.words.startswith("by rule (by rules: ")
    assert "Answer again" in str(model.asked[1][-1]["content"])
    found, _ = consult(text, answer(GRAFT))
    assert len(found.moves) == 1, "the second answer can be read"


def test_an_unknown_donor_is_left_to_the_referee() -> None:
    found, _ = consult(answer({**GRAFT, "donor": "i9"}))
    assert found.moves == (Graft(island="i1", donor="i9", donor_candidate=""),)


def test_the_population_is_described_in_words() -> None:
    text = described(population(), "i1")
    for words in ("Island i1 is stalled", "c2 (accuracy 1.000", "Best c2 solves: t1", "healthy"):
        assert words in text


def test_a_provider_that_is_down_leaves_the_island_to_the_rules() -> None:
    """One failed call must not end a run of three days."""

    async def down(messages: object, tools: object) -> tuple[Mapping[str, object], Usage]:
        raise ModelError("the provider is down")

    orchestrator = AgentOrchestrator(down, no_reassign, Rules(), lambda view: "i3")
    found = asyncio.run(orchestrator.consult(population(), "i1"))
    assert "the provider is down" in found.words
