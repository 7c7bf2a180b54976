"""The `openai` library through the gateway: chat completions and responses."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sdk_scene import (
    COUNTS,
    FAILURES,
    KEY,
    KINDS,
    PNG,
    SCHEMA,
    TASK,
    Scene,
    call,
    calling,
    scene,
    told,
    writes_a_file,
)

from milo.core.ports import Caps
from milo.testing.scripted_model import Answer, in_turn

openai = pytest.importorskip("openai")
TEXT = Answer(text="Four short words here.", **COUNTS)
FUNCTION = {"name": "write_file", "description": "Write a file.", "parameters": SCHEMA}
CHAT_TOOL = {"type": "function", "function": FUNCTION}
RESPONSES_TOOL = {"type": "function", **FUNCTION, "strict": False}


def client(here: Scene) -> Any:
    return here.kept(openai.AsyncOpenAI(base_url=f"{here.root}/v1", api_key=here.token))


def sync_client(here: Scene) -> Any:
    return openai.OpenAI(base_url=f"{here.root}/v1", api_key=here.token)


HELLO: list[Any] = [{"role": "user", "content": "Hello"}]


async def test_chat_usage_is_what_the_model_reported() -> None:
    async with scene(in_turn([TEXT])) as here:
        done = await client(here).chat.completions.create(model="any", messages=HELLO)
        assert done.choices[0].message.content == TEXT.text
        assert done.model == "frozen"
        assert done.usage.prompt_tokens_details.cached_tokens == 1000
        assert await here.usage() == KINDS


async def test_chat_from_a_synchronous_client() -> None:
    async with scene(in_turn([TEXT])) as here:

        def read() -> Any:
            with sync_client(here) as ours:
                return ours.chat.completions.create(model="any", messages=HELLO)

        done = await asyncio.to_thread(read)
        assert done.choices[0].message.content == TEXT.text


async def test_a_chat_stream_comes_in_pieces_and_is_metered_exactly() -> None:
    async with scene(in_turn([TEXT])) as here:
        stream = await client(here).chat.completions.create(
            model="any", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        said = [c.choices[0].delta.content or "" for c in chunks if c.choices]
        assert "".join(said) == TEXT.text and len([s for s in said if s]) == 4
        assert chunks[-1].usage.completion_tokens == 300
        assert {chunk.model for chunk in chunks} == {"frozen"}
        assert await here.usage() == KINDS


async def test_a_synchronous_chat_stream() -> None:
    async with scene(in_turn([TEXT])) as here:

        def read() -> str:
            with sync_client(here) as ours:
                chunks = ours.chat.completions.create(model="any", messages=HELLO, stream=True)
                return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)

        assert await asyncio.to_thread(read) == TEXT.text


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_chat_harness_finishes_a_file_writing_task(tmp_path: Path, streaming: bool) -> None:
    run = writes_a_file(tmp_path)
    async with scene(in_turn(TASK)) as here:
        messages: list[Any] = [{"role": "user", "content": "Write three files."}]
        while True:
            message = await _chat_turn(here, messages, streaming)
            messages.append(message)
            for made in message.get("tool_calls") or ():
                arguments = json.loads(made["function"]["arguments"])
                told_back = run(made["function"]["name"], arguments)
                messages.append({"role": "tool", "tool_call_id": made["id"], "content": told_back})
            if not message.get("tool_calls"):
                break
        assert [p.read_text() for p in sorted(tmp_path.iterdir())] == ["A", "B", "C"]
        assert message["content"] == TASK[-1].text
        assert await here.usage() == KINDS + KINDS + KINDS


async def _chat_turn(here: Scene, messages: list[Any], streaming: bool) -> dict[str, Any]:
    asked: dict[str, Any] = {"model": "m", "messages": messages, "tools": [CHAT_TOOL]}
    if not streaming:
        done = await client(here).chat.completions.create(**asked)
        return dict(done.choices[0].message.model_dump(exclude_none=True))
    async with client(here).chat.completions.stream(**asked) as stream:
        done = await stream.get_final_completion()
    message = done.choices[0].message.model_dump(exclude_none=True)
    for made in message.get("tool_calls") or ():
        made["function"].pop("parsed_arguments", None)
    message.pop("parsed", None)
    return dict(message)


async def test_a_chat_picture_reaches_the_model_as_it_is() -> None:
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    async with scene(in_turn([TEXT])) as here:
        messages: list[Any] = [{"role": "user", "content": [part]}]
        await client(here).chat.completions.create(model="m", messages=messages)
        assert here.sent["messages"][0]["content"] == [part]


async def test_a_picture_from_the_network_is_refused() -> None:
    """The provider would fetch it: a way out of the sandbox."""
    part = {"type": "image_url", "image_url": {"url": "https://example.org/?leak=1"}}
    async with scene(in_turn([TEXT])) as here:
        messages: list[Any] = [{"role": "user", "content": [part]}]
        with pytest.raises(openai.BadRequestError, match="nothing is fetched"):
            await client(here).chat.completions.create(model="m", messages=messages)
        assert here.server.tally.calls == 0


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("status", FAILURES)
async def test_a_provider_s_error_is_the_library_s_own_exception(
    wire: str, streaming: bool, status: int
) -> None:
    failing = Answer(status=status, error=f"says no, {KEY}")
    async with scene(in_turn([failing])) as here:
        with pytest.raises(openai.APIStatusError) as caught:
            await _ask(here, wire, streaming)
        assert caught.value.status_code == told(status)
        assert "says no" in str(caught.value) and KEY not in str(caught.value)
        report = await here.session.close()
        assert bool(report.fault) == (status != 400)
        assert len(report.exchanges) == 1, "the library must not try again what is final"


async def _ask(here: Scene, wire: str, streaming: bool) -> Any:
    if wire == "chat":
        made = await client(here).chat.completions.create(
            model="m", messages=HELLO, stream=streaming
        )
    else:
        made = await client(here).responses.create(model="m", input="Hello", stream=streaming)
    return [piece async for piece in made] if streaming else made


@pytest.mark.parametrize("wire", ["chat", "responses"])
async def test_a_stream_that_breaks_off_is_the_library_s_exception(wire: str) -> None:
    async with scene(in_turn([replace(TEXT, drop_after=2)])) as here:
        with pytest.raises(openai.APIError):
            await _ask(here, wire, True)
        report = await here.session.close()
        assert report.fault and here.server.tally.calls == 1
        assert report.usage.estimated and report.usage.output > 0


@pytest.mark.parametrize("wire", ["chat", "responses"])
async def test_a_connection_that_drops_before_the_first_piece_is_tried_again(wire: str) -> None:
    async with scene(in_turn([Answer(drop=True), replace(TEXT, drop_after=0), TEXT])) as here:
        await _ask(here, wire, True)
        assert here.server.tally.calls == 3
        assert await here.usage() == KINDS


@pytest.mark.parametrize("wire", ["chat", "responses"])
async def test_a_dead_token_and_a_cap_are_the_library_s_exceptions(wire: str) -> None:
    async with scene(in_turn([TEXT]), Caps(calls=1)) as here:
        await _ask(here, wire, False)
        with pytest.raises(openai.RateLimitError, match="1 calls"):
            await _ask(here, wire, False)
        await here.session.close()
        with pytest.raises(openai.AuthenticationError):
            await _ask(here, wire, True)
        assert here.server.tally.calls == 1


async def test_an_unknown_route_is_not_found() -> None:
    async with scene(in_turn([TEXT])) as here:
        with pytest.raises(openai.NotFoundError, match="/v1/responses"):
            await client(here).embeddings.create(model="m", input="x")


async def test_a_response_and_its_usage() -> None:
    async with scene(in_turn([TEXT])) as here:
        done = await client(here).responses.create(
            model="any", instructions="Be brief.", input="Hello", max_output_tokens=9
        )
        assert done.output_text == TEXT.text
        assert (done.status, done.model) == ("completed", "frozen")
        usage = done.usage
        assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (2006, 300, 2306)
        assert usage.input_tokens_details.cached_tokens == 1000
        assert usage.output_tokens_details.reasoning_tokens == 192
        assert here.sent["messages"] == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
        ]
        assert here.sent["max_tokens"] == 9
        assert await here.usage() == KINDS


async def test_a_response_that_ran_out_of_tokens_is_incomplete() -> None:
    async with scene(in_turn([replace(TEXT, finish_reason="length")])) as here:
        done = await client(here).responses.create(model="m", input="Hello")
        assert done.status == "incomplete"
        assert done.incomplete_details.reason == "max_output_tokens"


async def test_a_streamed_response_ends_as_the_whole_one() -> None:
    answer = replace(TEXT, thoughts="Hm hm.")
    async with scene(in_turn([answer, answer])) as here:
        whole = await client(here).responses.create(model="m", input="Hello")
        async with client(here).responses.stream(model="m", input="Hello") as stream:
            events = [event async for event in stream]
            final = await stream.get_final_response()
        assert final.output_text == whole.output_text == TEXT.text
        assert final.usage == whole.usage
        assert [item.type for item in final.output] == [item.type for item in whole.output]
        assert [e.sequence_number for e in events] == list(range(len(events)))
        assert len([e for e in events if e.type == "response.output_text.delta"]) == 4


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_responses_harness_finishes_a_file_writing_task(
    tmp_path: Path, streaming: bool
) -> None:
    run = writes_a_file(tmp_path)
    async with scene(in_turn(TASK)) as here:
        items: list[Any] = [{"role": "user", "content": "Write three files."}]
        while True:
            done = await _responses_turn(here, items, streaming)
            items += [item.model_dump(exclude_none=True) for item in done.output]
            made = [item for item in done.output if item.type == "function_call"]
            for one in made:
                output = run(one.name, json.loads(one.arguments))
                items.append(
                    {"type": "function_call_output", "call_id": one.call_id, "output": output}
                )
            if not made:
                break
        assert [p.read_text() for p in sorted(tmp_path.iterdir())] == ["A", "B", "C"]
        assert done.output_text == TASK[-1].text
        roles = [message["role"] for message in here.sent["messages"]]
        assert roles == ["user", "assistant", "tool", "tool", "assistant", "tool"]
        assert await here.usage() == KINDS + KINDS + KINDS


async def _responses_turn(here: Scene, items: list[Any], streaming: bool) -> Any:
    asked: dict[str, Any] = {"model": "m", "input": items, "tools": [RESPONSES_TOOL]}
    if not streaming:
        return await client(here).responses.create(**asked, store=False)
    async with client(here).responses.stream(**asked, store=False) as stream:
        async for _ in stream:
            pass
        final = await stream.get_final_response()
    for item in final.output:
        if item.type == "function_call":
            item.parsed_arguments = None
    return final


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_custom_tool_gets_its_free_text(streaming: bool) -> None:
    """Codex edits files by such a tool."""
    patch = '*** Begin Patch\n+ "quoted"\n'
    tool: Any = {"type": "custom", "name": "apply_patch", "description": "Edit files."}
    async with scene(in_turn([calling(call(1, "apply_patch", input=patch))])) as here:
        made = await client(here).responses.create(
            model="m", input="Edit.", tools=[tool], stream=streaming
        )
        if streaming:
            made = [event async for event in made][-1].response
        (item,) = made.output
        assert (item.type, item.input, item.call_id) == ("custom_tool_call", patch, "call_1")


async def test_a_tool_that_the_provider_would_run_is_left_out_and_noted() -> None:
    async with scene(in_turn([TEXT])) as here:
        tools: list[Any] = [{"type": "web_search"}, RESPONSES_TOOL]
        await client(here).responses.create(model="m", input="Hello", tools=tools)
        assert [tool["function"]["name"] for tool in here.sent["tools"]] == ["write_file"]
        (exchange,) = (await here.session.close()).exchanges
        assert "tools.web_search" in exchange.pinned and "model" in exchange.pinned


async def test_a_responses_picture_reaches_the_model() -> None:
    url = f"data:image/png;base64,{PNG}"
    part = {"type": "input_image", "image_url": url, "detail": "low"}
    async with scene(in_turn([TEXT])) as here:
        items: list[Any] = [{"role": "user", "content": [part]}]
        await client(here).responses.create(model="m", input=items)
        assert here.sent["messages"][0]["content"] == [
            {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
        ]


async def test_what_needs_a_store_is_refused() -> None:
    async with scene(in_turn([TEXT])) as here:
        with pytest.raises(openai.BadRequestError, match="nothing is stored"):
            await client(here).responses.create(
                model="m", input="Hello", previous_response_id="resp_1"
            )


async def test_the_models_list_names_the_frozen_model() -> None:
    async with scene(in_turn([TEXT])) as here:
        assert [model.id async for model in client(here).models.list()] == ["frozen"]
