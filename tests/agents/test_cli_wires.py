"""Every coding agent writes a file through the gateway, and every token agrees.

The model is a server on the loopback that keeps its own count; behind the gateway it is reached as
any provider is. What the gateway counted must be what the server said, figure by figure, and what
the agent says of itself must be the same.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from cli_scene import SCOPE, ScriptedEditor, alive_with, brief_of, description, station

from milo.agents.cli.description import load
from milo.agents.cli_agent import CliAgentMutator
from milo.agents.pool import AGENTS
from milo.app.packages import programs_folder
from milo.core.attempt import Usage
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.line import Line, Policy
from milo.gateway.pins import Pins
from milo.testing.scripted_model import JSON, Answer, ScriptedServer, in_a_thread

TESTED = tuple(name for name in AGENTS if name != "goose")
WRITES = (
    "printf 'NOTE = \"written by the agent\"\\n' > harness/note.py",
    "cat harness/note.py",
    "printf '# add a note\\n\\nDiagnosis: none\\nEvidence: t1\\nHypothesis: none\\n' > CHANGE.md",
)
SECONDS = 300

pytestmark = [
    pytest.mark.timeout(420),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]


@dataclass
class Told:
    """A script that writes a file by whatever tool it is offered, and notes what usage it told.

    The figures differ from call to call, so that none can stand in for another.
    """

    editor: ScriptedEditor = field(default_factory=lambda: ScriptedEditor(commands=WRITES))
    usage: Usage = field(default_factory=Usage)

    def __call__(self, request: JSON, nth: int) -> Answer:
        call = self.editor._next(request)
        prompt, cached, output = 1000 + 37 * nth, 128 + 64 * nth, 21 + nth
        reasoning = 5 + nth % 3
        self.usage += Usage(
            uncached_input=prompt - cached,
            cached_input=cached,
            output=output,
            reasoning=reasoning,
            calls=1,
        )
        answer = Answer(
            text="" if call else "Done.",
            prompt_tokens=prompt,
            cached_tokens=cached,
            output_tokens=output,
            reasoning_tokens=reasoning,
        )
        if call is None:
            return answer
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        made = {"id": f"call_{nth}", "type": "function", "function": function}
        return replace(answer, tool_calls=(made,), finish_reason="tool_calls")


def line_to(server: ScriptedServer) -> Line:
    return Line(
        upstream=HttpUpstream(server.base_url, "scripted/editor", wire_model="editor"),
        pins=Pins(model="scripted/editor"),
        rng=np.random.default_rng(0),
        policy=Policy(tries=1),
    )


@pytest.mark.parametrize("name", TESTED)
def test_an_agent_writes_a_file_and_every_token_is_the_servers(name: str) -> None:
    about = description(name)
    told = Told()
    with in_a_thread(told) as server:
        place = replace(station(ScriptedEditor()), open_line=lambda: line_to(server))
        bounds = about.bounds.model_copy(update={"seconds": SECONDS})
        subject = CliAgentMutator(about.model_copy(update={"bounds": bounds}), f"{name}:m", place)
        worked = asyncio.run(subject.work(brief_of(), SCOPE))
        tally = server.tally
    assert worked.ended.ending.is_whole, worked.ended
    assert worked.left.tree.text("note.py") == 'NOTE = "written by the agent"\n'
    assert worked.left.change.title == "add a note"
    counted = worked.run.report.usage
    assert counted.calls == tally.calls > len(WRITES)
    assert replace(counted, dollars=None) == replace(told.usage, dollars=None)
    assert (counted.tokens, counted.estimated) == (tally.prompt_tokens + tally.output_tokens, False)
    if about.usage is not None:
        assert worked.said is not None
        assert worked.said.tokens == counted.tokens
        assert worked.said.cached_input == counted.cached_input
        assert worked.said.output == counted.output
    assert not alive_with(str(programs_folder() / name))


def test_there_is_an_agent_for_every_wire_that_the_gateway_speaks() -> None:
    assert {load(name).wire for name in TESTED} == {"chat", "responses", "messages"}
