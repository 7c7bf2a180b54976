"""Operators on the seeds: every order of edits leaves a readable harness that still works."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from agents_scene import PROSE, SEED_NAMES, ScriptedWorkshop, brief, evidence, seed, view

from milo.agents.operators.anatomy import study
from milo.agents.operators.catalogue import OPERATORS, operator_named
from milo.agents.operators.choice import candidates, history_factor, number_of_edits
from milo.agents.operators.composition import graft
from milo.agents.operators.mutator import NothingToPropose, OperatorMutator
from milo.agents.operators.operator import Emphasis
from milo.agents.operators.signs import Symptom, read_signs
from milo.agents.operators.surgery import option, techniques_in
from milo.core.events import Change, Verdict
from milo.core.evidence import Edge
from milo.core.fitness import TaskScore
from milo.core.harness import Harness
from milo.core.tree import FileTree

REPEATABLE = {
    "verify-longer",
    "more-steps",
    "fewer-steps",
    "smaller-context",
    "more-examples",
    "shorter-prompt",
}


def stacked(name: str, number: int, rng: np.random.Generator) -> FileTree:
    tree = seed(name).tree
    for index in rng.choice(len(OPERATORS), number):
        child = OPERATORS[int(index)].child(tree)
        if child is None:
            continue
        tree = child
        for path in tree:
            if path.endswith(".py"):
                ast.parse(tree.text(path))
        again = OPERATORS[int(index)].child(tree)
        assert again is None or OPERATORS[int(index)].name in REPEATABLE
    return tree


@pytest.mark.parametrize("name", SEED_NAMES)
def test_the_parts_of_each_seed_are_found(name: str) -> None:
    anatomy = study(seed(name))
    assert anatomy.ask and anatomy.extract and anatomy.solve
    assert anatomy.act_calls and anatomy.runs and anatomy.payloads and anatomy.act_prompts
    assert anatomy.loops is (name == "tool_loop")
    assert bool(anatomy.side_calls) is (name == "plan_act")


@pytest.mark.parametrize("name", SEED_NAMES)
def test_stacked_edits_in_any_order_compile_and_pass_the_smoke_test(
    name: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(SEED_NAMES.index(name))
    trees = [stacked(name, 7, rng) for _ in range(2)]
    Harness.from_tree(trees[-1])
    trees[-1].write_to(tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(tmp_path / "main.py"), "--smoke"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_an_unfamiliar_harness_is_understood_by_its_shape() -> None:
    source = (
        "import subprocess, urllib.request, json\nURL = '/chat/completions'\n"
        "HINT = 'Answer with one shell command.'\n\n\ndef llm(history):\n"
        "    return json.loads(urllib.request.urlopen(URL, json.dumps("
        "{'model': 'm', 'messages': history}).encode()).read())\n\n\n"
        "def pick(answer):\n    return answer.strip('`')\n\n\ndef go(job):\n"
        "    answer = llm([{'role': 'user', 'content': HINT + job}])\n"
        "    subprocess.run(pick(answer), shell=True)\n"
    )
    manifest = 'name = "x"\nentry = "python3 a.py"\n'
    tree = FileTree.of_texts({"harness.toml": manifest, "a.py": source})
    child = operator_named("act-in-python").child(tree)
    child = operator_named("see-files").child(child or tree)
    child = operator_named("verify-outputs").child(child or tree)
    assert child is not None
    text = child.text("a.py")
    assert "Answer with one Python program." in text
    assert "@python_programs\ndef pick" in text and "@verified(tries=1)\ndef go" in text
    assert (
        "llm(with_examples(with_files([{" in text
        and "recorded_run(pick(answer), shell=True)" in text
    )


def test_a_harness_without_the_parts_is_left_alone() -> None:
    tree = FileTree.of_texts(
        {"harness.toml": 'name = "x"\nentry = "python3 a.py"\n', "a.py": "print(1)\n"}
    )
    assert all(operator.child(tree) is None for operator in OPERATORS)


def test_files_that_may_not_be_edited_stay() -> None:
    tree = seed("bare").tree
    manifest = tree.text("harness.toml").replace('["**"]', '["notes/**"]')
    locked = tree.with_texts({"harness.toml": manifest})
    assert all(operator.child(locked) is None for operator in OPERATORS)


def test_signs_name_what_went_wrong() -> None:
    signs = read_signs(view("bare", evidence("t1", PROSE, stderr="bash: error: x")))
    for symptom in (Symptom.PROSE, Symptom.PLACEHOLDER, Symptom.RUN_ERROR, Symptom.BLIND):
        assert signs.share(symptom) == 1.0
    assert signs.share(Symptom.CUT_OFF) == 0.0 and signs.accuracy == 0.0
    assert "1 of 1 failing attempts" in signs.words(Symptom.PROSE)[0]


def test_a_parent_without_evidence_has_no_signs() -> None:
    signs = read_signs(view("bare", evidence("t", PROSE, resolved=True)))
    assert signs.failing == 0 and signs.share(*Symptom) == 0.0 and signs.accuracy == 1.0


def edge(title: str, verdict: Verdict, parent: str = "c0") -> Edge:
    return Edge(
        parent=parent,
        child="c9",
        round=1,
        change=Change(title=title),
        verdict=verdict,
        reason="",
        before=None,
        after=None,
    )


def test_rejected_edits_weigh_less_and_make_the_next_step_bolder() -> None:
    operator = operator_named("see-files")
    fresh = brief(view("bare"))
    refuted = brief(view("bare"), snapshot=(edge(operator.title, Verdict.REJECTED),))
    proven = brief(view("bare"), snapshot=(edge(operator.title, Verdict.ADMITTED, "c7"),))
    assert history_factor(operator, refuted) < 0.5 < history_factor(operator, fresh)
    assert history_factor(operator, proven) > 1.0
    solved = [evidence(f"t{n}", PROSE, resolved=n > 1) for n in range(12)]
    parent = view("bare", *solved)
    signs = read_signs(parent)
    many = brief(parent, snapshot=(edge("a", Verdict.REJECTED),) * 4)

    def mean(which: object) -> float:
        rng = np.random.default_rng(0)
        return float(np.mean([number_of_edits(signs, which, rng) for _ in range(50)]))  # type: ignore[arg-type]

    assert mean(brief(parent)) == 1.0 and mean(many) > 2.0


def test_emphasis_prefers_its_kind() -> None:
    parent = view("tool_loop")
    args = (parent.harness.tree, read_signs(parent), brief(parent), OPERATORS)
    plain = {c.operator.name: c.weight for c in candidates(*args, None)}
    frugal = {c.operator.name: c.weight for c in candidates(*args, Emphasis.FRUGAL)}
    assert frugal["stop-when-done"] > plain["stop-when-done"]
    assert frugal["see-files"] == plain["see-files"]


@pytest.mark.parametrize("name", SEED_NAMES)
def test_a_proposal_differs_from_its_parent_and_accounts_for_itself(name: str) -> None:
    parent = view(name)
    one, two = (
        asyncio.run(OperatorMutator().propose(brief(parent, seed=3), ScriptedWorkshop()))
        for _ in range(2)
    )
    assert one == two and one.tree != parent.harness.tree
    assert one.change.title and "2 of 2 attempts fail" in one.change.diagnosis
    assert "Refuted unless accuracy exceeds 0.00" in one.change.hypothesis


def test_a_child_that_was_proposed_before_is_not_proposed_again() -> None:
    parent = view("bare", *(evidence(f"t{n}", PROSE, resolved=n > 0) for n in range(9)))
    seen: set[str] = set()
    for _ in range(4):
        again = brief(parent, seed=1)
        again = type(again)(
            island="i",
            round=1,
            parents=(parent,),
            snapshot=(),
            seed=1,
            forbidden_digests=frozenset(seen),
        )
        child = asyncio.run(OperatorMutator().propose(again, ScriptedWorkshop())).tree.digest
        assert child not in seen
        seen.add(child)


def test_a_failing_smoke_test_ends_in_an_error_with_the_reason() -> None:
    with pytest.raises(NothingToPropose, match="no model"):
        asyncio.run(
            OperatorMutator().propose(brief(view("bare")), ScriptedWorkshop(smoke_error="no model"))
        )


def test_a_graft_carries_over_what_the_first_parent_lacks() -> None:
    first = operator_named("see-files").child(seed("bare").tree)
    donor = operator_named("act-in-python").child(seed("plan_act").tree)
    donor = operator_named("greedy").child(donor or FileTree())
    donor = operator_named("verify-outputs").child(donor or FileTree())
    assert first is not None and donor is not None
    child, carried = graft(first, donor)
    assert {"with_files", "python_programs", "verified"} <= techniques_in(child)
    assert option(child, "temperature") == "by_try(0, 0.7)" and "temperature" in carried
    assert child not in (first, donor)


def test_a_graft_starts_from_the_parent_that_solves_more() -> None:
    """Else an island on a poor seed would carry techniques over to where they bring little."""
    own, better = view("plan_act", candidate="a"), view("bare", candidate="b")
    better = replace(better, scores={"t": score(reward=1.0)})
    task = replace(brief(own), parents=(own, better))
    proposal = asyncio.run(OperatorMutator().propose(task, ScriptedWorkshop()))
    assert "model.py" not in proposal.tree and "plan.py" not in proposal.tree
    assert proposal.change.title.startswith("Start from the other parent")
    own = replace(own, scores={"t": score(reward=1.0)})
    task = replace(brief(own), parents=(own, better))
    proposal = asyncio.run(OperatorMutator().propose(task, ScriptedWorkshop()))
    assert "model.py" in proposal.tree


def score(reward: float) -> TaskScore:
    """A task scored by one attempt."""
    return TaskScore(n=1, reward=reward, resolved=int(reward), tokens=100.0, latency_s=1.0)


def test_a_graft_of_equals_still_gives_a_new_child() -> None:
    parents = (view("bare", candidate="a"), view("bare", candidate="b"))
    proposal = asyncio.run(OperatorMutator().propose(brief(*parents), ScriptedWorkshop()))
    assert proposal.tree != parents[0].harness.tree


def test_every_operator_has_a_name_of_its_own_and_says_what_it_expects() -> None:
    assert len({operator.name for operator in OPERATORS}) == len(OPERATORS)
    assert all(operator.hypothesis and operator.title for operator in OPERATORS)
