"""Mutators that a model drives: edits apply exactly, or are refused with the reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

import pytest
from agents_scene import ScriptedWorkshop, brief, calls, evidence, seed, view

from milo.agents import agent_loop
from milo.agents.agent_loop import TOOLS, AgentLoopMutator
from milo.agents.brief import as_files, prompt
from milo.agents.patches import EditRefused
from milo.agents.pool import OFFLINE, make_mutator, model_of
from milo.agents.single_call import SingleCallMutator
from milo.core.errors import ConfigError, ModelRefused
from milo.core.events import Change, Verdict
from milo.core.evidence import Edge, Proposal

HEAD = "TITLE: shorter\nDIAGNOSIS: too long\nHYPOTHESIS: cheaper\n"


def block(search: str, replace_: str, path: str = "main.py") -> str:
    return (
        f"{HEAD}=== EDIT {path}\n<<<<<<< SEARCH\n{search}\n=======\n{replace_}\n"
        ">>>>>>> REPLACE\n=== END\n"
    )


LINE = 'PROMPT = "Reply with a short bash script that does the task and nothing else."'


def call(workshop: ScriptedWorkshop) -> Proposal:
    return asyncio.run(SingleCallMutator("m").propose(brief(view("bare")), workshop))


def test_an_exact_block_is_applied_and_accounted_for() -> None:
    proposal = call(ScriptedWorkshop([block(LINE, 'PROMPT = "Go."')]))
    assert 'PROMPT = "Go."' in proposal.tree.text("main.py")
    assert proposal.change == Change(title="shorter", diagnosis="too long", hypothesis="cheaper")
    assert proposal.usage.calls == 1


def test_a_whole_file_may_be_new() -> None:
    answer = f"{HEAD}=== FILE notes/a.py\nX = 1\n=== END\n"
    assert call(ScriptedWorkshop([answer])).tree.text("notes/a.py") == "X = 1\n"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I would shorten the prompt.", "no complete FILE or EDIT block"),
        (f"{HEAD}=== FILE a.py\nX\n=== END\n=== FILE b.py\nX\n", "not closed"),
        (block("no such line", "x"), "0 times"),
        (block("import json\nimport os\nimport re\nimport", "x"), "0 times"),
        (block(LINE, LINE), "equals its parent"),
        (block(LINE, "x", "other.py"), "no such file"),
        (f"{HEAD}=== FILE ../a.py\nX\n=== END\n", "normalised relative path"),
        (f"{HEAD}=== EDIT main.py\nPROMPT = 1\n=== END\n", "malformed"),
        (block(LINE, "PROMPT = ("), "smoke test fails"),
    ],
)
def test_what_does_not_apply_is_refused_once_and_may_be_repaired(answer: str, reason: str) -> None:
    workshop = ScriptedWorkshop([answer, block(LINE, 'PROMPT = "Go."')])
    assert call(workshop).usage.calls == 2
    assert reason in str(workshop.asked[1][-1]["content"])
    with pytest.raises(EditRefused, match=reason):
        call(ScriptedWorkshop([answer, answer]))


def test_a_file_that_may_not_be_edited_is_refused() -> None:
    parent = view("bare")
    manifest = parent.harness.tree.text("harness.toml").replace('["**"]', '["notes/**"]')
    locked = replace(
        parent.harness, tree=parent.harness.tree.with_texts({"harness.toml": manifest})
    )
    locked = type(locked).from_tree(locked.tree)
    workshop = ScriptedWorkshop([block(LINE, "x")] * 2)
    with pytest.raises(EditRefused, match="does not allow"):
        asyncio.run(
            SingleCallMutator("m").propose(brief(replace(parent, harness=locked)), workshop)
        )


def tool(name: str, **arguments: object) -> str:
    return f"Next:\n```json\n{json.dumps({'tool': name, **arguments})}\n```"


def loop(workshop: ScriptedWorkshop, steps: int = 12) -> Proposal:
    return asyncio.run(AgentLoopMutator("m", steps=steps).propose(brief(view("bare")), workshop))


def results(workshop: ScriptedWorkshop) -> list[str]:
    return [str(messages[-1]["content"]) for messages in workshop.asked[1:]]


def test_the_agent_inspects_edits_tests_and_finishes() -> None:
    workshop = ScriptedWorkshop(
        [
            tool("read", path="brief/parent-scores.md"),
            tool("search", pattern="^PROMPT"),
            tool("bash", command="wc -l main.py"),
            tool("edit", path="main.py", search=LINE, replace='PROMPT = "Go."'),
            tool("write", path="notes.py", text="X = 1\n"),
            tool("smoke"),
            tool("finish", title="shorter", diagnosis="d", hypothesis="h"),
        ]
    )
    proposal = loop(workshop)
    shown = results(workshop)
    assert "task | reward" in shown[0] and "main.py:14" in shown[1]
    assert "shown" in shown[2] and "passes" in shown[5]
    assert proposal.change.title == "shorter" and proposal.usage.calls == 7
    assert "brief/task.md" not in proposal.tree and "notes.py" in proposal.tree


def test_bad_tool_calls_are_answered_with_the_reason() -> None:
    bad = [
        "no json here",
        tool("fly"),
        tool("read", path="nowhere.py"),
        tool("read", path="main.py", start="x"),
        tool("edit", path="main.py", search="not there", replace="x"),
        tool("write", path="/etc/x", text="x"),
        tool("write", path="a.py"),
        tool("search", pattern="("),
        tool("finish", title="t"),
    ]
    good = [
        tool("edit", path="main.py", search=LINE, replace="PROMPT = ("),
        tool("finish", title="t"),
        tool("edit", path="main.py", search="PROMPT = (", replace="PROMPT = ''"),
        tool("finish", title="t"),
    ]
    workshop = ScriptedWorkshop(bad + good)
    loop(workshop, steps=20)
    shown = results(workshop)
    assert all(text.startswith("Refused: ") for text in shown[: len(bad)])
    assert "smoke test fails" in shown[len(bad) + 1]


def test_a_harness_keeps_a_folder_that_is_named_as_the_briefs() -> None:
    workshop = ScriptedWorkshop(
        [
            tool("write", path="brief/prompt.md", text="Be brief."),
            tool("bash", command="true"),
            tool("finish", title="t"),
        ]
    )
    tree = loop(workshop).tree
    assert [path for path in tree if path.startswith("brief/")] == ["brief/prompt.md"]


def test_a_search_that_would_take_for_ever_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What breaks without it: a model's pattern holds up its island."""
    monkeypatch.setattr(agent_loop, "SEARCH_S", 0.05)
    edit = tool("edit", path="main.py", search=LINE, replace='PROMPT = "Go."')
    asked = [tool("write", path="a.txt", text="a" * 60 + "b"), tool("search", pattern="(a|aa)+$")]
    workshop = ScriptedWorkshop([*asked, edit, tool("finish", title="t")])
    loop(workshop)
    assert "a simpler pattern" in results(workshop)[1]


def test_a_models_own_tool_calls_are_carried_out_in_order_and_answered_one_by_one() -> None:
    edit = {"path": "main.py", "search": LINE, "replace": 'PROMPT = "Go."'}
    workshop = ScriptedWorkshop(
        [
            calls(("read", {"path": "brief/parent-scores.md"}), ("search", {"pattern": "^PROMPT"})),
            calls(("edit", edit), words="One edit."),
            calls(("finish", {"title": "shorter"}), ("smoke", {})),
        ]
    )
    proposal = loop(workshop)
    assert proposal.change.title == "shorter" and proposal.usage.calls == 3
    assert workshop.offered[0] == [tool.name for tool in TOOLS]
    told = workshop.asked[1][-3:]
    assert told[0]["tool_calls"] and told[0]["content"] is None
    assert [m["tool_call_id"] for m in told[1:]] == ["call_0", "call_1"]
    assert "task | reward" in str(told[1]["content"]) and "main.py:14" in str(told[2]["content"])
    assert "steps left" not in str(told[1]["content"]) and "11 steps left" in str(
        told[2]["content"]
    )
    assert workshop.asked[2][-2]["content"] == "One edit."


def test_a_provider_without_tools_is_asked_again_in_text_and_offered_none_any_more() -> None:
    edit = tool("edit", path="main.py", search=LINE, replace="PROMPT = ''")
    workshop = ScriptedWorkshop([edit, tool("finish", title="t")], refuses_tools=True)
    assert loop(workshop).change.title == "t"
    assert [bool(names) for names in workshop.offered] == [True, False, False]
    assert '{"tool": "bash", "command": "..."}' in str(workshop.asked[0][0]["content"])


def test_a_refusal_that_has_nothing_to_do_with_tools_ends_the_proposal() -> None:
    class Strict(ScriptedWorkshop):
        async def converse(self, messages: object, tools: object) -> NoReturn:
            raise ModelRefused("HTTP 400: too long")

    with pytest.raises(ModelRefused, match="too long"):
        loop(Strict())


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (calls(("fly", {})), "there is no tool 'fly'"),
        (calls(("read", {})), 'needs "path" as a string'),
        (
            {"tool_calls": [{"id": "x", "function": {"name": "smoke", "arguments": "{"}}]},
            "no valid JSON",
        ),
        (
            {"tool_calls": [{"id": "x", "function": {"name": "smoke", "arguments": "[1]"}}]},
            "no JSON object",
        ),
        ("I would rather talk.", "calls no tool"),
    ],
)
def test_a_bad_call_comes_back_with_its_reason(
    made: str | Mapping[str, object], reason: str
) -> None:
    edit = {"path": "main.py", "search": LINE, "replace": "PROMPT = ''"}
    workshop = ScriptedWorkshop([made, calls(("edit", edit), ("finish", {"title": "t"}))])
    assert loop(workshop).change.title == "t"
    assert reason in str(workshop.asked[1][-1]["content"])


def test_out_of_steps_the_tree_that_was_left_is_judged() -> None:
    edit = tool("edit", path="main.py", search=LINE, replace="PROMPT = ''")
    assert loop(ScriptedWorkshop([edit]), steps=1).change.title.startswith("unfinished")
    with pytest.raises(EditRefused, match="no new child"):
        loop(ScriptedWorkshop([tool("smoke")]), steps=1)
    broken = tool("edit", path="main.py", search=LINE, replace="PROMPT = (")
    with pytest.raises(EditRefused, match="out of steps"):
        loop(ScriptedWorkshop([broken]), steps=1)


def test_what_the_shell_changes_is_kept_without_the_brief() -> None:
    changed = seed("bare").tree.with_texts({"new.py": "X = 1\n", "brief/task.md": "changed"})
    workshop = ScriptedWorkshop(
        [tool("bash", command="x"), tool("finish", title="t")], shell_tree=changed
    )
    assert sorted(loop(workshop).tree) == ["harness.toml", "main.py", "new.py"]


def lineage_edge(number: int, verdict: Verdict, on_path: bool = False) -> Edge:
    return Edge(
        parent="c0",
        child=f"c{number}",
        round=number,
        change=Change(title=f"edit {number}", hypothesis="h" * 80),
        verdict=verdict,
        reason="no gain",
        before=None,
        after=None,
        flipped_up=("t1",),
        patch="+x\n" * 40,
        on_path=on_path,
    )


def test_the_brief_stays_within_its_bounds_and_keeps_what_matters() -> None:
    snapshot = tuple(lineage_edge(n, Verdict.REJECTED, n == 1) for n in range(1, 30))
    parent = view("bare", *(evidence(f"t{n}", "r" * 9000, stderr="e" * 9000) for n in range(20)))
    given = replace(
        brief(parent, snapshot=snapshot), request="graft it", error="too long", niche="n"
    )
    text = prompt(given)
    assert len(text) < 44_000
    for words in ("graft it", "too long", "edit 1", "- c2 rejected: edit 2", "main.py", "no gain"):
        assert words in text
    assert len(as_files(given)) > 20


def test_two_parents_are_shown_side_by_side() -> None:
    files = as_files(brief(view("bare"), view("plan_act", candidate="c1")))
    assert {"parent1-source.md", "parent2-source.md"} <= set(files)
    assert "Combine both parents" in files["task.md"]


@pytest.mark.parametrize(
    "spec",
    [*OFFLINE, "single_call:openai/m", "agent_loop:a/b:c"],
)
def test_a_mutator_is_called_what_the_pool_calls_it(spec: str) -> None:
    assert make_mutator(spec).name == spec
    assert model_of(spec) == spec.partition(":")[2]


@pytest.mark.parametrize(
    ("spec", "words"), [("operator", "nearest: operators"), ("single_call", "single_call:MODEL")]
)
def test_an_unknown_mutator_is_refused_with_the_nearest_name(spec: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_mutator(spec)
