"""The `anthropic` library through the gateway."""

from __future__ import annotations

import asyncio
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
    scene,
    told,
    writes_a_file,
)

from milo.core.ports import Caps
from milo.testing.scripted_model import Answer, in_turn

anthropic = pytest.importorskip("anthropic")
TEXT = Answer(text="Four short words here.", **COUNTS)
TOOL: Any = {"name": "write_file", "description": "Write a file.", "input_schema": SCHEMA}
HELLO: list[Any] = [{"role": "user", "content": "Hello"}]


def client(here: Scene) -> Any:
    return here.kept(anthropic.AsyncAnthropic(base_url=here.root, api_key=here.token))


async def _ask(here: Scene, streaming: bool = False, **more: Any) -> Any:
    asked = {"model": "any", "max_tokens": 64, "messages": HELLO, **more}
    if not streaming:
        return await client(here).messages.create(**asked)
    async with client(here).messages.stream(**asked) as stream:
        return await stream.get_final_message()


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_message_and_its_usage(streaming: bool) -> None:
    async with scene(in_turn([TEXT])) as here:
        done = await _ask(here, streaming)
        assert [block.text for block in done.content] == [TEXT.text]
        assert (done.model, done.stop_reason, done.role) == ("frozen", "end_turn", "assistant")
        usage = done.usage
        assert (usage.input_tokens, usage.output_tokens) == (106, 300)
        assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (1000, 900)
        assert await here.usage() == KINDS


async def test_a_message_from_a_synchronous_client() -> None:
    async with scene(in_turn([TEXT])) as here:

        def both() -> tuple[str, str]:
            asked: Any = {"model": "m", "max_tokens": 9, "messages": HELLO}
            with anthropic.Anthropic(base_url=here.root, api_key=here.token) as ours:
                with ours.messages.stream(**asked) as stream:
                    said = "".join(stream.text_stream)
                return ours.messages.create(**asked).content[0].text, said

        assert await asyncio.to_thread(both) == (TEXT.text, TEXT.text)


async def test_a_bearer_token_is_taken_as_well() -> None:
    async with scene(in_turn([TEXT])) as here:
        ours = here.kept(
            anthropic.AsyncAnthropic(base_url=here.root, auth_token=here.token, api_key=None)
        )
        done = await ours.messages.create(model="m", max_tokens=9, messages=HELLO)
        assert done.content[0].text == TEXT.text


async def test_text_streams_in_pieces() -> None:
    async with scene(in_turn([TEXT])) as here:
        asked: Any = {"model": "m", "max_tokens": 9, "messages": HELLO}
        async with client(here).messages.stream(**asked) as stream:
            pieces = [text async for text in stream.text_stream]
        assert len(pieces) == 4 and "".join(pieces) == TEXT.text


@pytest.mark.parametrize("streaming", [False, True])
async def test_thoughts_come_before_the_text(streaming: bool) -> None:
    async with scene(in_turn([replace(TEXT, thoughts="Hm hm.")])) as here:
        done = await _ask(here, streaming)
        assert [block.type for block in done.content] == ["thinking", "text"]
        assert done.content[0].thinking == "Hm hm."


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_messages_harness_finishes_a_file_writing_task(
    tmp_path: Path, streaming: bool
) -> None:
    run = writes_a_file(tmp_path)
    async with scene(in_turn(TASK)) as here:
        messages: list[Any] = [{"role": "user", "content": "Write three files."}]
        while True:
            done = await _ask(here, streaming, messages=messages, tools=[TOOL])
            blocks = [block.model_dump(exclude_none=True) for block in done.content]
            messages.append({"role": "assistant", "content": blocks})
            made = [block for block in done.content if block.type == "tool_use"]
            results = [
                {"type": "tool_result", "tool_use_id": b.id, "content": run(b.name, b.input)}
                for b in made
            ]
            if done.stop_reason != "tool_use":
                break
            messages.append({"role": "user", "content": results})
        assert [p.read_text() for p in sorted(tmp_path.iterdir())] == ["A", "B", "C"]
        assert done.content[0].text == TASK[-1].text
        roles = [message["role"] for message in here.sent["messages"]]
        assert roles == ["user", "assistant", "tool", "tool", "assistant", "tool"]
        assert await here.usage() == KINDS + KINDS + KINDS


async def test_pictures_reach_the_model_also_out_of_tool_results() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    picture = {"type": "image", "source": source}
    use = {"type": "tool_use", "id": "t1", "name": "write_file", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [picture]}
    messages = [
        {"role": "user", "content": [picture, {"type": "text", "text": "what?"}]},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    async with scene(in_turn([TEXT])) as here:
        await _ask(here, messages=messages, tools=[TOOL])
        url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
        first, _, tool, last = here.sent["messages"]
        assert first["content"] == [url, {"type": "text", "text": "what?"}]
        assert (tool["role"], tool["tool_call_id"]) == ("tool", "t1")
        assert last == {"role": "user", "content": [url]}


async def test_a_picture_from_the_network_is_refused() -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}}
    async with scene(in_turn([TEXT])) as here:
        with pytest.raises(anthropic.BadRequestError, match="nothing is fetched"):
            await _ask(here, messages=[{"role": "user", "content": [picture]}])
        assert here.server.tally.calls == 0


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("status", FAILURES)
async def test_a_provider_s_error_is_the_library_s_own_exception(
    streaming: bool, status: int
) -> None:
    failing = Answer(status=status, error=f"says no, {KEY}")
    async with scene(in_turn([failing])) as here:
        with pytest.raises(anthropic.APIStatusError) as caught:
            await _ask(here, streaming)
        assert caught.value.status_code == told(status)
        error = caught.value.body
        kind = "invalid_request_error" if status == 400 else "api_error"
        assert (error["type"], error["error"]["type"]) == ("error", kind)
        assert "says no" in str(caught.value) and KEY not in str(caught.value)
        report = await here.session.close()
        assert bool(report.fault) == (status != 400)
        assert len(report.exchanges) == 1, "the library must not try again what is final"


async def test_a_stream_that_breaks_off_is_the_library_s_exception() -> None:
    async with scene(in_turn([replace(TEXT, drop_after=2)])) as here:
        with pytest.raises(anthropic.APIStatusError):
            await _ask(here, True)
        report = await here.session.close()
        assert report.fault and here.server.tally.calls == 1
        assert report.usage.estimated and report.usage.output > 0


async def test_a_dead_token_and_a_cap_are_the_library_s_exceptions() -> None:
    async with scene(in_turn([TEXT]), Caps(calls=1)) as here:
        await _ask(here)
        with pytest.raises(anthropic.RateLimitError, match="1 calls"):
            await _ask(here)
        await here.session.close()
        with pytest.raises(anthropic.AuthenticationError):
            await _ask(here, True)
        assert here.server.tally.calls == 1


async def test_an_unknown_route_is_not_found_in_anthropic_s_shape() -> None:
    async with scene(in_turn([TEXT])) as here:
        with pytest.raises(anthropic.NotFoundError) as caught:
            await client(here).messages.batches.list()
        assert caught.value.body["error"]["type"] == "not_found_error"


async def test_tokens_are_counted_without_a_call() -> None:
    async with scene(in_turn([TEXT])) as here:
        counted = await client(here).messages.count_tokens(model="m", messages=HELLO)
        assert 1 <= counted.input_tokens < 30
        assert here.server.tally.calls == 0 and (await here.usage()).calls == 0


async def test_cache_marks_and_the_system_s_parts_are_kept() -> None:
    """A provider that knows them charges a tenth for what it has read before."""
    mark = {"type": "ephemeral"}
    system: Any = [{"type": "text", "text": "Long.", "cache_control": mark}]
    async with scene(in_turn([TEXT])) as here:
        await _ask(here, system=system, tools=[TOOL], tool_choice={"type": "any"})
        head = here.sent["messages"][0]
        assert head == {"role": "system", "content": [{**system[0]}]}
        assert here.sent["tool_choice"] == "required"
