"""Nobody sees a field that the list does not name, now or once another one is added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

import pytest

from milo.core.attempt import AttemptKey, Outcome, Status
from milo.core.disclosure import SHOWN, Hidden, Reader, shown_to
from milo.core.events import Change, Verdict
from milo.core.evidence import Trace
from milo.core.fitness import TaskScore
from milo.core.lineage import Node
from milo.core.task import Judging, Step, Task
from milo.core.tree import FileTree

HIDDEN = FileTree.of_texts({"secret": "mark"})
STEP = Step(
    name="one",
    instruction="do",
    files=FileTree(),
    tests=HIDDEN,
    solution=HIDDEN,
    min_reward={"r": 1},
)
TASK = Task(
    id="t",
    instruction="do",
    family="f",
    tests=HIDDEN,
    solution=HIDDEN,
    env={"A": "b"},
    resolved_at=0.5,
    judging=Judging(env={"MARK": "mark"}),
    steps=(STEP,),
)
SCORE = TaskScore(n=1, reward=1.0, resolved=1, tokens=1.0, latency_s=1.0)
NODE = Node(
    candidate="i1.1",
    island="i1",
    round=1,
    parents=("i1.0",),
    harness="h",
    mutator="m",
    change=Change(title="t"),
    scores={"search": {"s": SCORE}, "validation": {"v": SCORE}, "test": {"x": SCORE}},
    verdict=Verdict.INVALID,
    sent_back=("holds the id of held-out-1",),
)
OUTCOME = Outcome(
    key=AttemptKey(harness="h", task="t", task_digest="d", model="m", index=0),
    status=Status.COMPLETED,
    reward=1.0,
)
VALUES: Mapping[type, Any] = {
    Task: TASK,
    Step: STEP,
    Node: NODE,
    Outcome: OUTCOME,
    Trace: Trace(stdout="seen", verifier_output="hidden"),
}


def at_its_default(field: Field[Any]) -> object:
    if field.default is not MISSING:
        return field.default
    return "" if field.default_factory is MISSING else field.default_factory()


@pytest.mark.parametrize("reader", Reader)
def test_a_view_holds_the_listed_fields_and_of_the_others_nothing(reader: Reader):
    for kind, seen in SHOWN[reader].items():
        value = VALUES[kind]
        view = shown_to(reader, value)
        assert type(view) is kind
        assert seen <= {f.name for f in fields(kind)}, "the list names fields that there are"
        for f in fields(kind):
            if f.name not in seen:
                assert getattr(view, f.name) == at_its_default(f)


@pytest.mark.parametrize("reader", Reader)
def test_what_a_reader_has_no_entry_for_is_refused(reader: Reader):
    with pytest.raises(Hidden):
        shown_to(reader, Judging())
    for kind, value in VALUES.items():
        if kind not in SHOWN[reader]:
            with pytest.raises(Hidden):
                shown_to(reader, value)


def test_tests_and_solutions_are_for_nobody_in_steps_too():
    for reader in Reader:
        view = shown_to(reader, TASK)
        assert view.tests == view.solution == FileTree()
        assert view.judging == Judging()
        for step in view.steps:
            assert step.tests == step.solution == FileTree()
            assert step.min_reward == {}


def test_of_the_held_out_splits_no_score_by_task_is_shown():
    for reader in (Reader.MUTATOR, Reader.ORCHESTRATOR):
        view = shown_to(reader, NODE)
        assert set(view.scores) == {"search"}
        assert view.sent_back == ()
        assert view.candidate == "i1.1"


def test_the_verifiers_own_output_is_for_no_mutator():
    view = shown_to(Reader.MUTATOR, VALUES[Trace])
    assert (view.stdout, view.verifier_output) == ("seen", "")
