"""Chunks on their way to the caller: nothing secret gets out, nothing else is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from milo.gateway.chunks import Assembly
from milo.gateway.relay import Relay

SECRET = "canary-5e55-key"


def piece(reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


async def passed(chunks: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], Relay, list[Any]]:
    seen: list[Any] = []
    assembly = Assembly()

    async def emit(chunk: Mapping[str, object]) -> None:
        seen.append(chunk)
        assembly.add(chunk)

    relay = Relay(emit, (SECRET, ""))
    for chunk in chunks:
        await relay.emit(chunk)
    return assembly.body()["choices"][0]["message"], relay, seen  # type: ignore[index]


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
async def test_a_secret_that_the_stream_cuts_in_two_never_gets_out(cut: int) -> None:
    head, tail = SECRET[:cut], SECRET[cut:]
    pieces = [piece(content=f"key {head}"), piece(content=f"{tail} end"), piece("stop")]
    message, _, seen = await passed(pieces)
    assert message["content"] == "key [redacted] end"
    assert head[-8:] not in str(seen) or cut < 8


async def test_a_secret_in_pieces_of_one_letter_in_a_call_s_arguments() -> None:
    def call(text: str, **more: Any) -> dict[str, Any]:
        return piece(tool_calls=[{"index": 0, "function": {"arguments": text, **more}}])

    pieces = [call("{", name="f"), *(call(letter) for letter in f'"{SECRET}"'), call("}")]
    message, _, _ = await passed([*pieces, piece("tool_calls")])
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"[redacted]"}'}


async def test_what_only_looks_like_a_secret_s_beginning_comes_out_at_the_end() -> None:
    message, _, _ = await passed([piece(content="the canary-"), piece("stop")])
    assert message["content"] == "the canary-"


async def test_without_secrets_chunks_pass_as_they_are() -> None:
    seen: list[Any] = []

    async def emit(chunk: Mapping[str, object]) -> None:
        seen.append(chunk)

    chunk = piece(content="a")
    await Relay(emit, ()).emit(chunk)
    assert seen[0] is chunk


async def test_a_relay_knows_what_came_and_whether_the_caller_saw_any() -> None:
    relay = Relay(_ignore, ())
    assert not relay.started
    await relay.emit({"choices": [], "usage": {}})
    assert not relay.started
    await relay.emit(piece(reasoning_content="hm "))
    await relay.emit(piece(content="ok"))
    assert relay.started and relay.text == "hm ok"


async def _ignore(chunk: Mapping[str, object]) -> None:
    return None


async def test_a_library_that_goes_on_after_the_end_is_not_heard() -> None:
    seen: list[Any] = []

    async def emit(chunk: Mapping[str, object]) -> None:
        seen.append(chunk)

    relay = Relay(emit, ())
    relay.close()
    await relay.emit(piece(content="late"))
    assert seen == [] and relay.text == ""
