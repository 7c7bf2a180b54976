"""The coding agents themselves, as installed here, over a scripted model behind the real gateway.

Every case with every agent takes long, so all of them are run apart (``scripts/bench agents``), and
every test run takes one mutation of each agent (`test_cli_wires`) and one of these faults
(`test_cli_clients`). A case is skipped with the reason where an agent is not installed.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest
from cli_scene import (
    ACCOUNT,
    EDIT,
    SCOPE,
    ScriptedEditor,
    Workshop,
    alive_with,
    brief_of,
    description,
    mutator,
)

from milo.agents.cli.ending import Ending
from milo.agents.cli_agent import AgentFailed, Worked
from milo.agents.pool import AGENTS
from milo.app.packages import programs_folder
from milo.core.errors import ReplayMiss
from milo.gateway.replay_upstream import ReplayUpstream

CLIENTS = tuple(name for name in AGENTS if name != "goose")
WHOLE_S = 300
STUCK_S = 25

pytestmark = [
    pytest.mark.timeout(420),
    pytest.mark.parametrize("name", CLIENTS),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]


def work(name: str, upstream: ScriptedEditor, seconds: float = WHOLE_S) -> tuple[Worked, float]:
    """Run an agent once; how it went, and after how many seconds. No process may be left."""
    subject = mutator(description(name), upstream, seconds=seconds)
    begun = time.monotonic()
    worked = asyncio.run(subject.work(brief_of(), SCOPE))
    taken = time.monotonic() - begun
    assert not alive_with(str(programs_folder() / name))
    return worked, taken


def reason(name: str, upstream: ScriptedEditor) -> str:
    """Why an agent's work is no child."""
    workshop = Workshop()
    subject = mutator(description(name), upstream, seconds=WHOLE_S)
    with pytest.raises(AgentFailed) as failed:
        asyncio.run(subject.propose(brief_of(), workshop))
    assert workshop.usage == upstream.spent
    return str(failed.value)


def test_an_edit_through_its_tools_becomes_a_child_with_its_account(name: str) -> None:
    upstream, workshop = ScriptedEditor(), Workshop()
    subject = mutator(description(name), upstream, seconds=WHOLE_S)
    proposal = asyncio.run(subject.propose(brief_of(), workshop))
    assert "Answer with one bash script" in proposal.tree.text("main.py")
    assert proposal.change.title == "ask for one script"
    assert proposal.change.evidence == ("t1",)
    assert proposal.usage == workshop.usage == upstream.spent


def test_what_it_says_that_it_spent_is_what_the_gateway_counted(name: str) -> None:
    upstream = ScriptedEditor()
    worked, _ = work(name, upstream)
    if worked.said is None:
        assert description(name).usage is None
        pytest.skip(f"{name} does not say what it spends")
    counted = worked.run.report.usage
    assert worked.said.tokens == counted.tokens
    assert worked.said.cached_input == counted.cached_input
    assert worked.said.output == counted.output


def test_a_model_that_never_answers_ends_with_the_time(name: str) -> None:
    worked, taken = work(name, ScriptedEditor(hang=True), STUCK_S)
    assert worked.ended.ending in (Ending.OUT_OF_TIME, Ending.NO_MODEL)
    assert taken < STUCK_S + 60


def test_a_dead_endpoint_is_no_model_long_before_the_time(name: str) -> None:
    worked, taken = work(name, ScriptedEditor(down=True))
    assert worked.ended.ending is Ending.NO_MODEL
    assert "nobody answers" in worked.ended.words
    assert taken < WHOLE_S / 2


def test_a_crash_is_a_crash(name: str) -> None:
    worked, _ = work(name, ScriptedEditor(commands=("kill -9 -1",)))
    assert worked.ended.ending is Ending.CRASHED


def test_a_refusal_leaves_the_harness_unchanged(name: str) -> None:
    said = reason(name, ScriptedEditor(commands=(), words="I can't help with that."))
    assert "the harness is unchanged" in said


def test_an_inert_edit_is_no_child(name: str) -> None:
    same = "cp harness/main.py /tmp/m && cat /tmp/m > harness/main.py"
    assert "the harness is unchanged" in reason(name, ScriptedEditor(commands=(same, ACCOUNT)))


def test_an_edit_outside_the_harness_does_not_count(name: str) -> None:
    target = "/usr/local/milo-was-here"
    outside = f"echo x > {target}; echo x > /etc/milo; echo x > notes.txt; true"
    said = reason(name, ScriptedEditor(commands=(outside,)))
    assert "the harness is unchanged" in said and "notes.txt" in said
    assert not Path(target).exists() and not Path("/etc/milo").exists()


def test_a_recorded_model_leads_to_the_same_child_without_a_model(name: str) -> None:
    recorded, again = Workshop(), Workshop()
    subject = mutator(description(name), ScriptedEditor(), seconds=WHOLE_S)
    first = asyncio.run(subject.propose(brief_of(), recorded))
    replay = ReplayUpstream("scripted/editor", lambda scope: recorded.calls, loosely=True)
    subject = mutator(description(name), replay, seconds=WHOLE_S)
    assert asyncio.run(subject.propose(brief_of(), again)) == first
    assert [e.response for e in again.calls] == [e.response for e in recorded.calls]


def test_a_recording_that_lacks_a_call_fails_loudly(name: str) -> None:
    recorded = Workshop()
    subject = mutator(description(name), ScriptedEditor(), seconds=WHOLE_S)
    asyncio.run(subject.propose(brief_of(), recorded))
    replay = ReplayUpstream("scripted/editor", lambda scope: recorded.calls[:2], loosely=True)
    with pytest.raises(ReplayMiss, match="call 2: the recording holds 2 calls"):
        asyncio.run(mutator(description(name), replay, seconds=WHOLE_S).work(brief_of(), SCOPE))


def test_it_ends_when_its_calls_are_spent(name: str) -> None:
    about = description(name)
    subject = mutator(about, ScriptedEditor((EDIT, "true"), forever=True), seconds=90, calls=4)
    worked = asyncio.run(subject.work(brief_of(), SCOPE))
    assert worked.ended.ending is Ending.CAPPED
    assert worked.run.report.usage.calls == 4


FAULTS = (
    test_a_model_that_never_answers_ends_with_the_time,
    test_a_dead_endpoint_is_no_model_long_before_the_time,
    test_a_crash_is_a_crash,
    test_a_refusal_leaves_the_harness_unchanged,
    test_an_inert_edit_is_no_child,
    test_an_edit_outside_the_harness_does_not_count,
    test_it_ends_when_its_calls_are_spent,
    test_a_recorded_model_leads_to_the_same_child_without_a_model,
    test_a_recording_that_lacks_a_call_fails_loudly,
)
"""One of these for each agent is part of every test run."""
