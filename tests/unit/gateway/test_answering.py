"""How a streamed answer leaves the gateway, however fast its model and however slow its caller."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from gateway_scene import Caller, MakeLine, ask

from milo.core.attempt import Usage
from milo.core.errors import ModelError
from milo.core.ports import Caps, Completion, Emit
from milo.gateway.answering import MOST_HELD, Door
from milo.gateway.chunks import Assembly
from milo.testing.scripted_model import ScriptedUpstream, always


def piece(text: str, reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


class Gushing(ScriptedUpstream):
    """Streams its pieces without a pause, and counts those that were taken."""

    def __init__(self, *pieces: str, breaks: bool = False) -> None:
        super().__init__(always(""))
        self.pieces = pieces
        self.breaks = breaks
        self.taken = 0

    async def stream(
        self, request: Mapping[str, object], scope: str, nth: int, emit: Emit
    ) -> Completion:
        whole = Assembly()
        for nth_piece, text in enumerate(self.pieces, start=1):
            chunk = piece(text, "stop" if nth_piece == len(self.pieces) else None)
            whole.add(chunk)
            await emit(chunk)
            self.taken += 1
        if self.breaks:
            raise ModelError("broke off")
        return Completion(status=200, body=whole.body(), usage=Usage(calls=1), seconds=0.0)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often something was sent."""
    sizes: list[int] = []
    send = Door._send

    async def counted(self: Door) -> None:
        sizes.append(sum(map(len, self._waiting)))
        await send(self)

    monkeypatch.setattr(Door, "_send", counted)
    return sizes


def texts(stream: str) -> list[str]:
    lines = [line[6:] for line in stream.splitlines() if line.startswith("data: {")]
    events = [json.loads(line) for line in lines]
    deltas = [c["delta"] for event in events for c in event.get("choices", [])]
    return [delta["content"] for delta in deltas]


async def streamed(caller: Caller) -> str:
    session = await caller.gateway.open_session("s", Caps(), 1000)
    status, text = await caller.post(session, ask(stream=True))
    assert status == 200
    return str(text)


async def test_chunks_that_come_together_leave_together_and_as_many(
    make_line: MakeLine, serve: Any, written: list[int]
) -> None:
    """A gateway that is behind catches up: fewer writes, the same events."""
    words = [f"word {n} " for n in range(50)]
    text = await streamed(await serve(make_line(Gushing(*words))))
    assert texts(text) == words and text.endswith("data: [DONE]\n\n")
    assert len(written) <= 2, "all that came at once, and the end"


async def test_what_came_before_a_stream_broke_off_is_sent_before_the_error(
    make_line: MakeLine, serve: Any
) -> None:
    text = await streamed(await serve(make_line(Gushing("one ", "two", breaks=True))))
    assert texts(text) == ["one ", "two"]
    assert "broke off" in text and "[DONE]" not in text


async def turns_until_still(upstream: Gushing) -> int:
    """What was taken once nothing more is."""
    before, still = -1, 0
    while still < 100:
        still = still + 1 if upstream.taken == before else 0
        before = upstream.taken
        await asyncio.sleep(0)
    return before


async def test_a_slow_caller_holds_its_model_up_and_not_the_gateway_s_memory(
    make_line: MakeLine, serve: Any
) -> None:
    """And one that leaves frees it: nobody waits for room that never comes."""
    upstream = Gushing(*["x" * 1024] * 20_000)
    caller = await serve(make_line(upstream))
    session = await caller.gateway.open_session("s", Caps(), 1000)
    body = json.dumps(ask(stream=True)).encode()
    reader, writer = await asyncio.open_unix_connection(str(caller.gateway.socket), limit=1024)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Authorization: Bearer {session.token}\r\n\r\n".encode() + body)
    await reader.readline()
    taken = await turns_until_still(upstream)
    assert MOST_HELD // 2048 < taken < 2_000
    writer.close()
    report = await asyncio.wait_for(session.close(), 5)
    assert upstream.taken < 20_000
    assert report.usage.estimated and report.usage.output > 0


async def test_a_caller_that_reads_slowly_gets_everything(make_line: MakeLine, serve: Any) -> None:
    words = ["x" * 1024] * 1_000
    assert texts(await streamed(await serve(make_line(Gushing(*words))))) == words
