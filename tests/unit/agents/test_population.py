"""What the orchestrator's model is shown: every input that a diagnosis needs, within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from milo.agents.population import MAX_TASKS, described
from milo.core.attempt import Usage
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Change,
    IslandFounded,
    MoveApplied,
    MoveVoided,
    RoundEnded,
    Verdict,
)
from milo.core.fitness import TaskScore
from milo.core.moves import Consultation, Curriculum, Diagnosis, Graft, Reassign, Refusal, Speciate
from milo.core.population import Population
from milo.core.ports import PopulationView

TASKS = ("t1", "t2", "t3")
REASSIGN = Reassign(island="i1", mutator="operators-prompt")
GRAFT = Graft(island="i1", donor="i2", donor_candidate="i2.0")


def scores(rewards: Sequence[float]) -> dict[str, TaskScore]:
    return {
        task: TaskScore(n=1, reward=reward, resolved=int(reward), tokens=100.0, latency_s=1.0)
        for task, reward in zip(TASKS, rewards, strict=False)
    }


def child(
    fold: Population,
    name: str,
    verdict: Verdict,
    rewards: Sequence[float],
    *,
    parents: tuple[str, ...] = (),
    mutator: str = "operators",
    touched: tuple[str, ...] = (),
    gain: float = 0.0,
) -> None:
    """A candidate that was proposed, scored and judged; its name is ISLAND.ROUND."""
    island, _, round_ = name.partition(".")
    fold.apply(
        CandidateProposed(
            island=island,
            candidate=name,
            round=int(round_),
            parents=parents,
            harness=name * 32,
            mutator=mutator,
            change=Change(title=f"edit {name}", touched=touched),
            usage=Usage(output=500, calls=2, dollars=0.25),
        )
    )
    if not parents:
        fold.apply(
            IslandFounded(island=island, mutator=mutator, root=name, members=(name,), search=TASKS)
        )
    fold.apply(
        CandidateScored(island=island, candidate=name, split="search", scores=scores(rewards))
    )
    fold.apply(
        CandidateJudged(
            island=island, candidate=name, round=int(round_), verdict=verdict, reason="", gain=gain
        )
    )


def population() -> PopulationView:
    fold = Population()
    child(fold, "i1.0", Verdict.SEED, (0.0, 0.0, 0.0))
    child(fold, "i2.0", Verdict.SEED, (0.0, 1.0, 0.0))
    kin = {"parents": ("i1.0",)}
    child(fold, "i1.1", Verdict.ADMITTED, (1.0, 0.0, 0.0), touched=("a.py:f",), gain=0.25, **kin)
    child(fold, "i1.2", Verdict.REJECTED, (0.0, 0.0, 0.0), touched=("a.py:f", "b.py"), **kin)
    child(fold, "i1.3", Verdict.INVALID, (), touched=("a.py:f",), **kin)
    fold.apply(MoveApplied(island="i1", round=4, move=REASSIGN))
    child(fold, "i1.4", Verdict.REJECTED, (1.0, 0.0, 0.0), mutator="operators-prompt", **kin)
    fold.apply(RoundEnded(island="i1", round=4, stall=3, best_validation=0.5))
    fold.apply(MoveVoided(island="i1", round=4, move=GRAFT, reason="the donor is gone"))
    answer = Consultation(
        island="i1",
        round=3,
        diagnosis=Diagnosis.DRY_MUTATOR,
        words="two of three\nbrought nothing",
        moves=(REASSIGN, GRAFT),
        refused=(Refusal(move=Curriculum(tasks=("t9",), epoch=1), reason="not in the split"),),
    )
    return PopulationView(
        topology=fold.topology,
        lineage=fold.lineage,
        pool=("operators", "operators-prompt", "claude_code:m"),
        search_split=(*TASKS, "t4"),
        attempts_left=120,
        k=3,
        patience=2,
        past=(answer,),
        left={"tokens": None, "dollars": 12.5, "hours": 1.75, "rounds": 10},
    )


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("the stall", "Island i1 is stalled (patience 2)"),
        ("standing", "stalled for 3 rounds, best validation accuracy 0.500"),
        ("curve", "Best search accuracy by round: 0: 0.000, 1: 0.333"),
        ("clusters", "- a.py:f: 1 admitted, 1 rejected, 1 invalid, hypervolume +0.2500"),
        ("clusters", "- b.py: 1 rejected"),
        (
            "track record",
            "- operators: 1 admitted, 1 rejected, 1 invalid, hypervolume +0.2500; 1500",
        ),
        ("track record", "1500 tokens, $0.75"),
        ("track record", "- operators-prompt: 1 rejected; 500 tokens, $0.25"),
        ("track record", "- claude_code:m: no children"),
        ("matrix", "task | i1 | i2 | most | mean"),
        ("matrix", "t1 | 1.00 | 0.00 | 1.00 | 0.33"),
        ("matrix", "t3 | 0.00 | 0.00 | 0.00 | 0.00"),
        ("matrix", "1 tasks of the search split are unmeasured"),
        ("curriculum", "Searches on set 0 of 3 tasks."),
        ("budget", "Attempts left: 120; 3 attempts are made per task."),
        ("budget", "Left beside: 12.5 dollars, 1.75 hours, 6 rounds."),
        ("past", "- i1, round 3: dry mutator: two of three brought nothing"),
        (
            "past",
            "  - reassign i1 to operators-prompt: i1 from round 4: 1 rejected, "
            "best search accuracy 0.33 -> 0.33",
        ),
        ("past", "  - graft i2.0 of i2 into i1: void on i1"),
        ("past", "  - curriculum 1 of 1 tasks: refused, not in the split"),
        ("latest", "- i1.3, round 3, invalid: edit i1.3; not yet scored"),
    ],
)
def test_a_diagnosis_finds_what_it_needs(what: str, words: str) -> None:
    text = described(population(), "i1")
    assert words in text, f"{what}\n{text}"


def test_tasks_that_few_solve_stand_first() -> None:
    text = described(population(), "i1")
    assert text.index("t1 | ") < text.index("t3 | ")


def test_what_a_speciation_led_to_is_told_of_the_new_island_too() -> None:
    view = population()
    move = Speciate(island="i1", root="i1.1", mutator="operators", new_island="i2")
    view.topology.moves.append(("i1", 4, move))
    past = replace(view.past[0], moves=(move,), refused=())
    text = described(replace(view, past=(past,)), "i1")
    assert "speciate i1.1 of i1 as i2: i1 from round 4" in text and "; i2 from round 0" in text


def test_a_move_that_waits_is_said_to_wait() -> None:
    view = population()
    past = replace(view.past[0], moves=(Reassign(island="i2", mutator="operators-prompt"),))
    text = described(replace(view, past=(past,)), "i1")
    assert "reassign i2 to operators-prompt: not yet in effect" in text


def test_a_run_of_many_rounds_and_tasks_is_described_within_bounds() -> None:
    fold = Population()
    child(fold, "i1.0", Verdict.SEED, (0.0, 0.0, 0.0))
    for number in range(1, 400):
        child(
            fold,
            f"i1.{number}",
            Verdict.REJECTED,
            (0.0, 0.0, 0.0),
            parents=("i1.0",),
            touched=(f"file{number % 40}.py",),
        )
    many = tuple(f"task-{number:03d}" for number in range(500))
    view = PopulationView(
        topology=fold.topology,
        lineage=fold.lineage,
        pool=("operators",),
        search_split=(*TASKS, *many),
        attempts_left=None,
        k=1,
        patience=2,
    )
    text = described(view, "i1")
    assert len(text) < 12_000
    assert f"and {500 + len(TASKS) - MAX_TASKS} more" in text
    assert "and 32 parts that were tried less often" in text
    assert "Nothing else is limited." in text
