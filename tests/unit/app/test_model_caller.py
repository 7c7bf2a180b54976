"""How mutators and the orchestrator reach a model: with tools or without, and on record."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import numpy as np
import pytest

from milo.agents.agent_loop import TOOLS
from milo.app.model_caller import SessionCaller
from milo.core.attempt import Usage
from milo.core.errors import ModelError, ModelRefused
from milo.core.ports import SessionReport
from milo.gateway.line import Line, Policy
from milo.gateway.pins import Pins
from milo.runtime.bench import Bench
from milo.testing.scripted_model import Answer, Script, ScriptedUpstream

MESSAGES = ({"role": "user", "content": "Go on."},)
CALLED = {"id": "c1", "type": "function", "function": {"name": "smoke", "arguments": "{}"}}
DECLARED = [tool.declared() for tool in TOOLS]


def caller(script: Script) -> SessionCaller:
    line = Line(
        upstream=ScriptedUpstream(script),
        pins=Pins(model="scripted"),
        rng=np.random.default_rng(0),
        policy=Policy(tries=1),
    )
    return SessionCaller(lambda: line)


def by_tools(request: Mapping[str, object], nth: int) -> Answer:
    """Calls a tool where any is offered, else says so in words."""
    if request.get("tools"):
        return Answer(text="", tool_calls=(CALLED,), finish_reason="tool_calls")
    return Answer(text="no tools here")


def bench(script: Script) -> Bench:
    return Bench(None, caller(script), "mutator/i1.1/0")  # type: ignore[arg-type]


def test_tools_reach_the_model_and_its_calls_come_back() -> None:
    subject = bench(by_tools)
    message, usage = asyncio.run(subject.converse(MESSAGES, DECLARED))
    assert message["tool_calls"] == [CALLED]
    assert usage.calls == 1 and subject.usage == usage


def test_a_call_without_tools_is_asked_as_ever() -> None:
    text, _ = asyncio.run(bench(by_tools).complete(MESSAGES))
    assert text == "no tools here"


def test_every_call_is_kept_whichever_way_it_was_made() -> None:
    subject = bench(by_tools)

    async def three() -> None:
        await subject.complete(MESSAGES)
        await subject.converse(MESSAGES, DECLARED)
        other = caller(by_tools)
        _, usage, exchanges = await other("its/own/session", MESSAGES)
        subject.add(SessionReport(usage=usage, exchanges=exchanges))
        await subject.keep()

    kept: dict[str, int] = {}

    class Recorder:
        async def put_session(self, scope: str, exchanges: object) -> None:
            kept[scope] = len(exchanges)  # type: ignore[arg-type]

    class Peers:
        recorder = Recorder()

    subject._peers = Peers()  # type: ignore[assignment]
    asyncio.run(three())
    assert kept == {"mutator/i1.1/0": 3} and subject.usage.calls == 3


@pytest.mark.parametrize(
    ("answer", "refused"),
    [(Answer(status=400, error="tools are not supported"), True), (Answer(drop=True), False)],
)
def test_a_refused_request_is_told_from_a_provider_that_is_down(
    answer: Answer, refused: bool
) -> None:
    with pytest.raises(ModelError) as failed:
        asyncio.run(bench(lambda request, nth: answer).converse(MESSAGES, DECLARED))
    assert isinstance(failed.value, ModelRefused) is refused


def test_a_bench_without_a_model_has_spent_nothing() -> None:
    assert bench(by_tools).usage == Usage()
