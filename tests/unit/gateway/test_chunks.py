"""A completion taken apart into a stream's chunks, and put together again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from milo.gateway.chat_wire import ChatWire
from milo.gateway.chunks import Assembly, chunks_of
from milo.testing.scripted_model import Answer, body_of

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def events(body: dict[str, object], include_usage: bool) -> list[dict[str, Any]]:
    encoder = ChatWire().encoder({"stream_options": {"include_usage": include_usage}}, "pinned")
    parts = [part.removeprefix("data: ") for part in encoder.end(body).decode().split("\n\n")]
    assert parts[-2:] == ["[DONE]", ""]
    return [json.loads(part) for part in parts[:-2]]


def test_a_completion_streams_as_deltas_and_a_finish_reason() -> None:
    first, last = events(body_of(Answer(text="a b"), {"model": "m"}, 1), False)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": "a b"}
    assert last["choices"][0]["finish_reason"] == "stop"
    assert first["object"] == "chat.completion.chunk"
    assert first["model"] == "pinned"


def test_usage_streams_only_where_it_was_asked_for() -> None:
    *_, last = events(body_of(Answer(text="a b"), {}, 1), True)
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 2


def test_streamed_tool_calls_carry_their_index() -> None:
    first, _ = events(body_of(Answer(tool_calls=(CALL, CALL)), {}, 1), False)
    assert [call["index"] for call in first["choices"][0]["delta"]["tool_calls"]] == [0, 1]


def assembled(*chunks: dict[str, Any]) -> dict[str, Any]:
    assembly = Assembly()
    for chunk in chunks:
        assembly.add(chunk)
    return assembly.body()


def piece(reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


@pytest.mark.parametrize("answer", [Answer(text="a b"), Answer(tool_calls=(CALL, {**CALL}))])
def test_what_was_taken_apart_is_whole_again(answer: Answer) -> None:
    body = body_of(answer, {"model": "m"}, 1)
    whole = assembled(*chunks_of(body), {"choices": [], "usage": body["usage"]})
    assert whole["choices"] == body["choices"]
    assert whole["usage"] == body["usage"]


def test_text_thoughts_and_mixed_calls_are_put_together_by_index() -> None:
    def call(index: int, **function: str) -> dict[str, Any]:
        return {"index": index, "id": f"c{index}" if "name" in function else None} | {
            "function": function
        }

    whole = assembled(
        piece(role="assistant", content=""),
        piece(reasoning_content="hm"),
        piece(reasoning_content="m"),
        piece(content="o"),
        piece(content="k"),
        piece(tool_calls=[call(0, name="f", arguments="{")]),
        piece(tool_calls=[call(1, name="g", arguments="")]),
        piece(tool_calls=[call(1, arguments="[]"), call(0, arguments="}")]),
        piece("tool_calls"),
    )
    (choice,) = whole["choices"]
    assert choice["message"]["content"] == "ok"
    assert choice["message"]["reasoning_content"] == "hmm"
    calls = choice["message"]["tool_calls"]
    assert [c["function"] for c in calls] == [
        {"name": "f", "arguments": "{}"},
        {"name": "g", "arguments": "[]"},
    ]
    assert [c["id"] for c in calls] == ["c0", "c1"]
    assert choice["finish_reason"] == "tool_calls"


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    """Some OpenAI-compatible servers give each call whole, in a chunk of its own."""
    whole = assembled(
        piece(tool_calls=[{"id": "a", "function": {"name": "f", "arguments": "{}"}}]),
        piece("stop", tool_calls=[{"id": "b", "function": {"name": "g", "arguments": "{}"}}]),
    )
    assert [c["id"] for c in whole["choices"][0]["message"]["tool_calls"]] == ["a", "b"]


def test_a_stream_is_finished_only_with_a_reason() -> None:
    assembly = Assembly()
    assert assembly.empty and not assembly.finished
    assembly.add(piece(content="a"))
    assert not assembly.empty and not assembly.finished
    assembly.add(piece("length"))
    assert assembly.finished


def test_the_last_usage_of_a_stream_counts() -> None:
    """Servers that report as they go report sums."""
    running = [{**piece(content="a"), "usage": {"completion_tokens": n}} for n in (1, 2, 3)]
    assert assembled(*running)["usage"] == {"completion_tokens": 3}
