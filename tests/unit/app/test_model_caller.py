"""How mutators and the orchestrator reach a model: with tools or without, and on record."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import numpy as np
import pytest

from milo.agents.agent_loop import TOOLS
from milo.agents.dialogue import Dialogue
from milo.app.model_caller import SessionCaller
from milo.core.attempt import Usage
from milo.core.errors import ModelRefused, ModelUnavailable
from milo.core.ports import SessionReport, Upstream
from milo.gateway.line import Line, Policy
from milo.gateway.pins import Pins
from milo.gateway.replay_upstream import ReplayUpstream
from milo.runtime.bench import Bench
from milo.testing.scripted_model import Answer, Script, ScriptedUpstream

MESSAGES = ({"role": "user", "content": "Go on."},)
CALLED = {"id": "c1", "type": "function", "function": {"name": "smoke", "arguments": "{}"}}
DECLARED = [tool.declared() for tool in TOOLS]


def caller(script: Script) -> SessionCaller:
    return over(ScriptedUpstream(script))


def over(upstream: Upstream) -> SessionCaller:
    line = Line(
        upstream=upstream,
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


def test_calls_in_vain_are_kept_so_that_a_replay_fails_in_the_same_way() -> None:
    """The second request of the loop is answered only by a recording that holds the first too."""

    def no_tools(request: Mapping[str, object], nth: int) -> Answer:
        return Answer(status=400) if request.get("tools") else Answer(text="in words")

    subject = bench(no_tools)
    dialogue = Dialogue(subject.converse, TOOLS, MESSAGES)
    assert asyncio.run(dialogue.ask()).text == "in words"
    recorded = tuple(subject._exchanges)
    assert [exchange.status for exchange in recorded] == [400, 200]
    replay = ReplayUpstream("scripted", lambda scope: recorded)
    again = Bench(None, over(replay), "mutator/i1.1/0")  # type: ignore[arg-type]
    assert asyncio.run(Dialogue(again.converse, TOOLS, MESSAGES).ask()).text == "in words"


@pytest.mark.parametrize(
    ("answer", "refused"),
    [(Answer(status=400, error="tools are not supported"), True), (Answer(drop=True), False)],
)
def test_a_refused_request_is_told_from_a_provider_that_is_down(
    answer: Answer, refused: bool
) -> None:
    """And of the one that is down nothing is kept: it is waited for, which a replay need not."""

    async def call() -> None:
        await caller(lambda request, nth: answer)("scope", MESSAGES, DECLARED)

    with pytest.raises(ModelRefused if refused else ModelUnavailable) as failed:
        asyncio.run(call())
    assert bool(failed.value.exchanges) is refused


def test_a_bench_without_a_model_has_spent_nothing() -> None:
    assert bench(by_tools).usage == Usage()
