"""What a harness meets on the socket."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from gateway_scene import MakeLine, ask

from milo.core.errors import UserError
from milo.core.evidence import Trace
from milo.core.ports import Caps
from milo.gateway.proxy import Gateway
from milo.store.codec import encode
from milo.testing.scripted_model import Answer, ScriptedUpstream, always, in_turn


async def test_a_completion_comes_back_under_the_pinned_name(
    make_line: MakeLine, serve: Any
) -> None:
    caller = await serve(make_line(ScriptedUpstream(always("fine"))))
    session = await caller.gateway.open_session("s", Caps(), 60)
    status, body = await caller.post(session, ask(model="mine"))
    assert status == 200
    assert body["choices"][0]["message"]["content"] == "fine"
    assert body["model"] == "frozen"
    assert (await session.close()).usage.calls == 1


@pytest.mark.parametrize("token", ["", "wrong", "sk-anything"])
async def test_an_unknown_token_is_401_and_never_forwarded(
    make_line: MakeLine, serve: Any, token: str
) -> None:
    upstream = ScriptedUpstream(always("a"))
    caller = await serve(make_line(upstream))
    await caller.gateway.open_session("s", Caps(), 60)
    status, body = await caller.post(token, ask())
    assert (status, body["error"]["code"]) == (401, "invalid_api_key")
    assert upstream.tally.calls == 0


async def test_a_closed_session_s_token_is_401(make_line: MakeLine, serve: Any) -> None:
    """A background process that outlives its attempt must not reach the model."""
    upstream = ScriptedUpstream(always("a"))
    caller = await serve(make_line(upstream))
    session = await caller.gateway.open_session("s", Caps(), 60)
    await session.close()
    assert (await caller.post(session, ask()))[0] == 401
    assert upstream.tally.calls == 0


async def test_sessions_do_not_share_caps_or_records(make_line: MakeLine, serve: Any) -> None:
    caller = await serve(make_line(ScriptedUpstream(always("a"))))
    one = await caller.gateway.open_session("one", Caps(calls=1), 60)
    two = await caller.gateway.open_session("two", Caps(calls=1), 60)
    assert one.token != two.token
    assert [(await caller.post(s, ask()))[0] for s in (one, two, one)] == [200, 200, 429]
    assert (await one.close()).capped and not (await two.close()).capped


async def test_malformed_json_is_400_in_openai_s_shape_and_recorded(
    make_line: MakeLine, serve: Any
) -> None:
    caller = await serve(make_line(ScriptedUpstream(always("a"))))
    session = await caller.gateway.open_session("s", Caps(), 60)
    status, body = await caller.post(session, b"{not json")
    assert status == 400
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert (await session.close()).exchanges[0].status == 400


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": [{"role": "user", "content": "a"}], "temperature": 1e999}',
        b'{"messages": [{"role": "user", "content": ' + b"[" * 400 + b"]" * 400 + b"}]}",
    ],
)
async def test_what_no_record_could_hold_is_the_harness_s_mistake(
    make_line: MakeLine, serve: Any, body: bytes
) -> None:
    """A number beyond floats or endless nesting would otherwise end the whole run."""
    upstream = ScriptedUpstream(always("a"))
    caller = await serve(make_line(upstream))
    session = await caller.gateway.open_session("s", Caps(), 1000)
    status, told = await caller.post(session, body)
    assert (status, told["error"]["code"]) == (400, "invalid_json")
    assert upstream.tally.calls == 0
    assert encode(Trace(exchanges=(await session.close()).exchanges))


async def test_a_body_that_is_too_large_is_413(make_line: MakeLine, serve: Any) -> None:
    upstream = ScriptedUpstream(always("a"))
    caller = await serve(make_line(upstream), max_body_bytes=1000)
    session = await caller.gateway.open_session("s", Caps(), 60)
    status, body = await caller.post(session, ask("x" * 2000))
    assert (status, body["error"]["code"]) == (413, "request_too_large")
    assert upstream.tally.calls == 0


@pytest.mark.parametrize("path", ["completions", "embeddings", "files", "chat/completions/"])
async def test_other_routes_are_404_and_say_what_is_served(
    make_line: MakeLine, serve: Any, path: str
) -> None:
    caller = await serve(make_line(ScriptedUpstream(always("a"))))
    session = await caller.gateway.open_session("s", Caps(), 60)
    status, body = await caller.post(session, ask(), path)
    assert status == 404
    assert "/v1/chat/completions" in body["error"]["message"]


async def test_the_models_route_lists_the_frozen_model(make_line: MakeLine, serve: Any) -> None:
    caller = await serve(make_line(ScriptedUpstream(always("a"))))
    session = await caller.gateway.open_session("s", Caps(), 60)
    headers = {"Authorization": f"Bearer {session.token}"}
    async with caller.client.get("http://gw/v1/models", headers=headers) as reply:
        assert [m["id"] for m in (await reply.json())["data"]] == ["frozen"]
    async with caller.client.get("http://gw/v1/models") as reply:
        assert reply.status == 401


async def test_a_stream_is_answered_as_events_and_metered(make_line: MakeLine, serve: Any) -> None:
    caller = await serve(make_line(ScriptedUpstream(always("one two"))))
    session = await caller.gateway.open_session("s", Caps(), 60)
    asked = ask(stream=True, stream_options={"include_usage": True})
    status, text = await caller.post(session, asked)
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    assert status == 200 and text.endswith("data: [DONE]\n\n")
    assert chunks[0]["choices"][0]["delta"]["content"] == "one two"
    assert chunks[-1]["usage"]["completion_tokens"] == 2
    report = await session.close()
    assert report.usage.output == 2
    assert report.exchanges[0].response["object"] == "chat.completion"


async def test_a_failed_stream_is_a_plain_error(make_line: MakeLine, serve: Any) -> None:
    caller = await serve(make_line(ScriptedUpstream(in_turn([Answer(status=400)]))))
    session = await caller.gateway.open_session("s", Caps(), 60)
    status, body = await caller.post(session, ask(stream=True))
    assert status == 400 and "error" in body


async def test_a_harness_that_dies_takes_its_call_with_it(make_line: MakeLine, serve: Any) -> None:
    """The embedded model has few slots: a dead harness must not hold one."""
    upstream = ScriptedUpstream(in_turn([Answer(latency_s=60)]))
    caller = await serve(make_line(upstream))
    session = await caller.gateway.open_session("s", Caps(), 600)
    call = asyncio.create_task(caller.post(session, ask()))
    async with asyncio.timeout(5):
        while not upstream.tally.in_flight:
            await asyncio.sleep(0.005)
        call.cancel()
        while upstream.tally.in_flight:
            await asyncio.sleep(0.005)
    assert (await session.close()).exchanges[0].status == 499


async def test_closing_answers_the_call_in_flight(make_line: MakeLine, serve: Any) -> None:
    caller = await serve(make_line(ScriptedUpstream(in_turn([Answer(latency_s=60)]))))
    session = await caller.gateway.open_session("s", Caps(), 600)
    call = asyncio.create_task(caller.post(session, ask()))
    await asyncio.sleep(0.05)
    await session.close()
    assert (await asyncio.wait_for(call, 5))[0] in (401, 499)


async def test_the_token_appears_in_no_report(make_line: MakeLine, serve: Any) -> None:
    caller = await serve(make_line(ScriptedUpstream(always("a"))))
    session = await caller.gateway.open_session("s", Caps(), 60)
    await caller.post(session, ask())
    assert session.token not in repr(await session.close())


async def test_the_socket_is_open_to_the_sandbox_s_user_and_goes_with_the_gateway(
    make_line: MakeLine, serve: Any
) -> None:
    caller = await serve(make_line(ScriptedUpstream(always("a"))))
    path: Path = caller.gateway.socket
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    await caller.gateway.stop()
    assert not path.exists()
    await caller.gateway.stop()


async def test_a_socket_left_by_a_dead_gateway_is_taken_over(
    make_line: MakeLine, socket_dir: Path
) -> None:
    path = socket_dir / "left.sock"
    first = Gateway(make_line(ScriptedUpstream(always("a"))), path)
    await first.start()
    second = Gateway(make_line(ScriptedUpstream(always("a"))), path)
    await second.start()
    assert path.exists()
    await second.stop()
    await first.stop()


async def test_a_socket_path_that_is_too_long_is_refused(
    make_line: MakeLine, tmp_path: Path
) -> None:
    gateway = Gateway(make_line(ScriptedUpstream(always("a"))), tmp_path / ("x" * 120))
    with pytest.raises(UserError, match="at most 100 bytes"):
        await gateway.start()


async def test_the_gateway_names_the_pinned_model(make_line: MakeLine, socket_dir: Path) -> None:
    gateway = Gateway(make_line(ScriptedUpstream(always("a"), "local[x]")), socket_dir / "a")
    assert (gateway.model, gateway.model_name) == ("local[x]", "frozen")


async def test_a_door_answers_whoever_holds_a_token_and_costs_no_call(
    make_line: MakeLine, serve: Any
) -> None:
    upstream = ScriptedUpstream(always("a"))

    async def double(asked: Mapping[str, object]) -> Mapping[str, object]:
        return {"twice": 2 * int(str(asked["n"]))}

    caller = await serve(make_line(upstream), doors={"/v1/double": double})
    session = await caller.gateway.open_session("s", Caps(), 60)
    assert await caller.post(session, {"n": 4}, "double") == (200, {"twice": 8})
    assert (await caller.post(session, b"{no", "double"))[0] == 400
    assert (await caller.post("wrong", {"n": 4}, "double"))[0] == 401
    assert upstream.tally.calls == 0


async def test_nonsense_that_the_gateway_itself_refuses_is_no_fault_of_the_provider(
    make_line: MakeLine, serve: Any
) -> None:
    """A harness can't make its attempt a missing one by asking for what is not served."""
    caller = await serve(make_line(ScriptedUpstream(always("fine"))), max_body_bytes=2000)
    session = await caller.gateway.open_session("scope", Caps(), 60.0)
    statuses = [
        (await caller.post(session, ask(), path))[0]
        for path in ("completions", "nonsense", "chat/completions/../../x", "responses/1")
    ]
    statuses.append((await caller.post("another token", ask()))[0])
    statuses.append((await caller.post(session, b"{"))[0])
    statuses.append((await caller.post(session, ask("x" * 3000)))[0])
    assert statuses == [404, 404, 404, 404, 401, 400, 413]
    assert (await session.close()).fault == ""
