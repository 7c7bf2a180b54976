"""Every way of asking, in every format, from both kinds of client: the figures are the model's own.

Clients that block run in a thread, as a harness of their kind would in its process.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sdk_scene import (
    COUNTS,
    FAILURES,
    KEY,
    KINDS,
    PNG,
    SCHEMA,
    Scene,
    call,
    calling,
    scene,
    told,
)

from milo.testing.scripted_model import Answer, in_turn

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

WIRES = ("chat", "responses", "messages")
STYLES = [(blocking, streaming) for blocking in (True, False) for streaming in (False, True)]
NAMES = {
    style: f"{'sync' if style[0] else 'async'}-{'stream' if style[1] else 'whole'}"
    for style in STYLES
}
ONE = (call(1, "write_file", path="a.txt", text="A"),)
TWO = (*ONE, call(2, "write_file", path="b.txt", text="B"))
ANSWERS: Mapping[str, Answer] = {
    "text": Answer(text="Four short words here.", **COUNTS),
    "tool": calling(*ONE),
    "parallel": calling(*TWO),
    "text and tools": replace(calling(*TWO), text="Both files now."),
    "picture": Answer(text="A small picture.", **COUNTS),
}
FUNCTION = {"name": "write_file", "description": "Write a file.", "parameters": SCHEMA}
PICTURE_URL = f"data:image/png;base64,{PNG}"
TOOLS: Mapping[str, Any] = {
    "chat": [{"type": "function", "function": FUNCTION}],
    "responses": [{"type": "function", **FUNCTION, "strict": False}],
    "messages": [{"name": "write_file", "description": "Write a file.", "input_schema": SCHEMA}],
}
PICTURES: Mapping[str, Any] = {
    "chat": {"type": "image_url", "image_url": {"url": PICTURE_URL}},
    "responses": {"type": "input_image", "image_url": PICTURE_URL, "detail": "auto"},
    "messages": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
    },
}


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a library's caller sees: text, calls by name and arguments, and its usage figures:
    input without and with what came from the cache or went into it, and output."""

    text: str
    calls: tuple[tuple[str, Mapping[str, str]], ...]
    fresh: int
    cached: int
    output: int


def request_of(wire: str, case: str) -> dict[str, Any]:
    content: Any = [PICTURES[wire]] if case == "picture" else "Do it."
    asked: dict[str, Any] = {"model": "any", "tools": TOOLS[wire]}
    message = {"role": "user", "content": content}
    if wire == "responses":
        return {**asked, "input": [message], "store": False}
    if wire == "messages":
        asked["max_tokens"] = 64
    return {**asked, "messages": [message]}


def resource(here: Scene, wire: str, blocking: bool) -> tuple[Any, Any]:
    """A client and its part that creates and streams."""
    if wire == "messages":
        kind = anthropic.Anthropic if blocking else anthropic.AsyncAnthropic
        client = kind(base_url=here.root, api_key=here.token)
        return client, client.messages
    kind = openai.OpenAI if blocking else openai.AsyncOpenAI
    client = kind(base_url=f"{here.root}/v1", api_key=here.token)
    return client, client.responses if wire == "responses" else client.chat.completions


def streamed(wire: str, part: Any, asked: Mapping[str, Any]) -> Any:
    if wire == "chat":
        return part.stream(**asked, stream_options={"include_usage": True})
    return part.stream(**asked)


FINALS = {"chat": "completion", "responses": "response", "messages": "message"}


async def ask(here: Scene, wire: str, style: tuple[bool, bool], asked: Mapping[str, Any]) -> Any:
    """The library's own final object."""
    blocking, streaming = style
    client, part = resource(here, wire, blocking)
    final = f"get_final_{FINALS[wire]}"

    def blocked() -> Any:
        with client:
            if not streaming:
                return part.create(**asked)
            with streamed(wire, part, asked) as stream:
                for _ in stream:
                    pass
                return getattr(stream, final)()

    if blocking:
        return await asyncio.to_thread(blocked)
    async with client:
        if not streaming:
            return await part.create(**asked)
        async with streamed(wire, part, asked) as stream:
            async for _ in stream:
                pass
            return await getattr(stream, final)()


def read(wire: str, done: Any) -> Told:
    usage = done.usage
    if wire == "chat":
        message, cached = done.choices[0].message, usage.prompt_tokens_details.cached_tokens
        made = [one.function for one in message.tool_calls or ()]
        return Told(
            text=message.content or "",
            calls=tuple((one.name, json.loads(one.arguments)) for one in made),
            fresh=usage.prompt_tokens - cached,
            cached=cached,
            output=usage.completion_tokens,
        )
    if wire == "responses":
        made = [item for item in done.output if item.type == "function_call"]
        cached = usage.input_tokens_details.cached_tokens
        return Told(
            text=done.output_text,
            calls=tuple((one.name, json.loads(one.arguments)) for one in made),
            fresh=usage.input_tokens - cached,
            cached=cached,
            output=usage.output_tokens,
        )
    used = [block for block in done.content if block.type == "tool_use"]
    return Told(
        text="".join(block.text for block in done.content if block.type == "text"),
        calls=tuple((block.name, block.input) for block in used),
        fresh=usage.input_tokens + usage.cache_creation_input_tokens,
        cached=usage.cache_read_input_tokens,
        output=usage.output_tokens,
    )


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize("style", STYLES, ids=NAMES.get)
@pytest.mark.parametrize("wire", WIRES)
async def test_what_the_model_said_and_reported_arrives_exactly(
    wire: str, style: tuple[bool, bool], case: str
) -> None:
    answer = ANSWERS[case]
    async with scene(in_turn([answer])) as here:
        seen = read(wire, await ask(here, wire, style, request_of(wire, case)))
        assert seen == Told(
            text=answer.text,
            calls=tuple(
                (made["function"]["name"], json.loads(made["function"]["arguments"]))  # type: ignore[index]
                for made in answer.tool_calls
            ),
            fresh=KINDS.uncached_input + KINDS.cache_write,
            cached=KINDS.cached_input,
            output=KINDS.output,
        )
        if case == "picture":
            (part,) = here.sent["messages"][-1]["content"]
            assert part["image_url"]["url"] == PICTURE_URL
        assert await here.usage() == KINDS
        tally = here.server.tally
        assert (tally.calls, tally.prompt_tokens, tally.output_tokens) == (1, 2006, 300)


@pytest.mark.parametrize("status", FAILURES)
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_blocking_client_gets_the_provider_s_error_as_its_library_s(
    wire: str, streaming: bool, status: int
) -> None:
    failing = Answer(status=status, error=f"says no, {KEY}")
    kinds = (openai.APIStatusError, anthropic.APIStatusError)
    async with scene(in_turn([failing])) as here:
        with pytest.raises(kinds) as caught:
            await ask(here, wire, (True, streaming), request_of(wire, "text"))
        assert caught.value.status_code == told(status)
        assert "says no" in str(caught.value) and KEY not in str(caught.value)
        report = await here.session.close()
        assert bool(report.fault) == (status != 400)
        assert report.usage.tokens == 0, "an error costs nothing"


@pytest.mark.parametrize("wire", WIRES)
async def test_a_blocking_client_s_stream_that_breaks_off_is_its_library_s_exception(
    wire: str,
) -> None:
    dropped = replace(ANSWERS["text"], drop_after=2)
    async with scene(in_turn([dropped])) as here:
        with pytest.raises((openai.APIError, anthropic.APIError)):
            await ask(here, wire, (True, True), request_of(wire, "text"))
        report = await here.session.close()
        assert report.fault and here.server.tally.calls == 1
        assert report.usage.estimated and report.usage.output > 0


@pytest.mark.parametrize("style", STYLES, ids=NAMES.get)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_provider_that_recovers_costs_one_call(wire: str, style: tuple[bool, bool]) -> None:
    """The gateway tries again; the caller, and its bill, see the answer alone."""
    failing = Answer(status=500, error="overloaded")
    async with scene(in_turn([failing, Answer(drop=True), ANSWERS["text"]])) as here:
        seen = read(wire, await ask(here, wire, style, request_of(wire, "text")))
        assert seen.text == ANSWERS["text"].text
        assert await here.usage() == KINDS and here.server.tally.calls == 3
