"""What was recorded in one format is replayed in it: whole, streamed, and from one to the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from gateway_scene import Caller, MakeLine

from milo.core.evidence import Exchange
from milo.core.ports import Caps
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.replay_upstream import ReplayUpstream
from milo.testing.scripted_model import Answer, ScriptedServer, in_turn

Serve = Callable[..., Any]
HELLO = [{"role": "user", "content": "hello"}]
NAMED = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
WIRES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "chat": (
        "chat/completions",
        {
            "messages": HELLO,
            "stream_options": {"include_usage": True},
            "tools": [{"type": "function", "function": NAMED}],
        },
    ),
    "responses": ("responses", {"input": "hello", "tools": [{"type": "function", **NAMED}]}),
    "messages": (
        "messages",
        {
            "messages": HELLO,
            "max_tokens": 30,
            "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        },
    ),
}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look", "arguments": '{"at": "a.txt"}'},
}
ANSWER = Answer(
    text="Let me look.",
    thoughts="Hm.",
    tool_calls=(CALL,),
    finish_reason="tool_calls",
    prompt_tokens=60,
    cached_tokens=20,
    output_tokens=40,
    reasoning_tokens=10,
)


async def recorded(
    serve: Serve, make_line: MakeLine, wire: str, streaming: bool
) -> tuple[Any, ...]:
    """What a caller got from a model, and what was kept of it."""
    async with ScriptedServer(in_turn([ANSWER])) as server:
        upstream = HttpUpstream(server.base_url, "frozen", wire_model="m")
        got, exchanges = await answered(await serve(make_line(upstream)), wire, streaming)
        await upstream.close()
    return got, exchanges


async def replayed(
    serve: Serve, make_line: MakeLine, exchanges: tuple[Exchange, ...], wire: str, streaming: bool
) -> tuple[Any, ...]:
    upstream = ReplayUpstream("frozen", lambda scope: exchanges)
    return await answered(await serve(make_line(upstream)), wire, streaming)


async def answered(caller: Caller, wire: str, streaming: bool) -> tuple[Any, tuple[Exchange, ...]]:
    path, asked = WIRES[wire]
    session = await caller.gateway.open_session("s", Caps(), 600)
    status, body = await caller.post(session, {**asked, "stream": streaming}, path)
    assert status == 200, body
    report = await session.close()
    assert not report.fault
    return (told(events(body)) if streaming else body), report.exchanges


def events(text: str) -> list[dict[str, Any]]:
    lines = (line[6:] for line in text.splitlines() if line.startswith("data: "))
    return [json.loads(line) for line in lines if line != "[DONE]"]


def told(stream: list[dict[str, Any]]) -> dict[str, Any]:
    """What a stream comes to, however it was cut: text, arguments of calls, and usage."""
    text, arguments, usage = "", "", None
    for one in stream:
        for choice in one.get("choices") or ():
            delta = choice["delta"]
            text += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                arguments += call["function"].get("arguments") or ""
        delta = one.get("delta")
        if one.get("type") == "response.output_text.delta":
            text += str(delta)
        elif one.get("type") == "response.function_call_arguments.delta":
            arguments += str(delta)
        elif isinstance(delta, dict):
            text += delta.get("text", "")
            arguments += delta.get("partial_json", "")
        usage = one.get("usage") or (one.get("response") or {}).get("usage") or usage
    return {"text": text, "arguments": arguments, "usage": usage}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_recording_answers_in_the_format_that_it_was_made_in(
    serve: Serve, make_line: MakeLine, wire: str, streaming: bool
) -> None:
    first, exchanges = await recorded(serve, make_line, wire, streaming)
    again, kept = await replayed(serve, make_line, exchanges, wire, streaming)
    assert again == first
    if streaming:
        assert first["text"] == ANSWER.text
        assert json.loads(first["arguments"]) == {"at": "a.txt"}
    assert [e.usage for e in kept] == [e.usage for e in exchanges]
    assert exchanges[0].usage.tokens == 100 and exchanges[0].usage.cached_input == 20


@pytest.mark.parametrize("wire", WIRES)
async def test_a_whole_answer_is_replayed_to_a_caller_that_streams(
    serve: Serve, make_line: MakeLine, wire: str
) -> None:
    """A candidate that streams where its recording did not asks the model nothing new."""
    _, exchanges = await recorded(serve, make_line, wire, False)
    streamed, _ = await replayed(serve, make_line, exchanges, wire, True)
    assert streamed["text"] == ANSWER.text
    assert json.loads(streamed["arguments"]) == {"at": "a.txt"}
