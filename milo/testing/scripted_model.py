"""A model that answers by script: a loopback OpenAI-compatible server, and an in-process upstream.

Tests of every room use it in place of a provider. It is deterministic: the same requests in the
same order get the same answers, ids and token counts, and it keeps its own count of calls and
tokens, against which a meter can be checked.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType

from aiohttp import web

from milo.core.attempt import Usage
from milo.core.errors import ModelError
from milo.core.ports import Completion
from milo.testing.scripted_stream import send_stream

JSON = Mapping[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One scripted reply; `drop` cuts the connection without one, `drop_after` in the middle of a
    stream, after so many pieces.

    Token counts that are None are counted from the text, one per blank-separated word.
    `latency_s` is waited before the answer, `seconds_per_token` once per output token (in a
    stream before each piece). With `tells_usage` False no usage is told. `headers` are sent along.
    """

    text: str = ""
    status: int = 200
    error: str = "scripted failure"
    code: str = ""
    drop: bool = False
    latency_s: float = 0.0
    seconds_per_token: float = 0.0
    prompt_tokens: int | None = None
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int | None = None
    reasoning_tokens: int = 0
    finish_reason: str = "stop"
    tool_calls: tuple[JSON, ...] = ()
    thoughts: str = ""
    drop_after: int | None = None
    tells_usage: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)


Script = Callable[[JSON, int], Answer]
"""From a request body and its number (from 0) to the answer."""


def always(text: str) -> Script:
    """A script that gives the same text to every request."""
    return lambda request, nth: Answer(text=text)


def in_turn(answers: Sequence[Answer | str]) -> Script:
    """A script that gives the answers in order, and repeats the last one."""
    given = [Answer(text=answer) if isinstance(answer, str) else answer for answer in answers]
    return lambda request, nth: given[min(nth, len(given) - 1)]


@dataclass(kw_only=True, slots=True)
class Tally:
    """What a scripted model has seen so far: its own count, apart from any meter's."""

    calls: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    requests: list[JSON] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0


class ScriptedServer:
    """A loopback server under `base_url`; an async context manager. One event loop."""

    def __init__(self, script: Script, *, sleep: Callable[[float], Awaitable[None]] | None = None):
        self.script = script
        self.tally = Tally()
        self.base_url = ""
        self._sleep = sleep or asyncio.sleep
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> ScriptedServer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen on a free loopback port."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/v1"

    async def stop(self) -> None:
        """Close every connection; safe to call twice."""
        runner, self._runner = self._runner, None  # it may be started again meanwhile
        if runner is not None:
            await runner.cleanup()

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "scripted"}]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.tally.headers.append(dict(request.headers))
        answer = _start(self.tally, self.script, body)
        streams = body.get("stream") is True and answer.status < 400 and not answer.drop
        try:
            await self._sleep(answer.latency_s if streams else _wait_s(answer))
            reply = body_of(answer, body, self.tally.calls)
            if streams:
                return await self._stream(request, answer, reply)
        finally:
            self.tally.in_flight -= 1
        if answer.drop:
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError("scripted drop")
        _count(self.tally, reply)
        return web.json_response(reply, status=answer.status, headers=answer.headers)

    async def _stream(
        self, request: web.Request, answer: Answer, reply: JSON
    ) -> web.StreamResponse:
        sent = await send_stream(
            request,
            reply,
            seconds_per_piece=answer.seconds_per_token,
            drop_after=answer.drop_after,
            sleep=self._sleep,
        )
        _count(self.tally, reply)
        return sent


class ScriptedUpstream:
    """An in-process `Upstream` with the same scripts. `price` is dollars per token."""

    def __init__(self, script: Script, model: str = "scripted", price: float | None = 0.0) -> None:
        self.script = script
        self.tally = Tally()
        self.closed = False
        self._model = model
        self._price = price

    @property
    def model(self) -> str:
        """The name it was made with."""
        return self._model

    async def complete(self, request: JSON, scope: str, nth: int) -> Completion:
        """Answer by script; a scripted drop raises `ModelError`."""
        answer = _start(self.tally, self.script, request)
        try:
            await asyncio.sleep(_wait_s(answer))
        finally:
            self.tally.in_flight -= 1
        if answer.drop:
            raise ModelError("scripted drop")
        reply = body_of(answer, request, self.tally.calls)
        _count(self.tally, reply)
        return Completion(
            status=answer.status,
            body=reply,
            usage=self._usage(answer, request),
            seconds=_wait_s(answer),
        )

    async def check(self) -> Usage:
        """A scripted model always answers, and for nothing."""
        return Usage()

    async def close(self) -> None:
        """Note that it was closed."""
        self.closed = True

    def _usage(self, answer: Answer, request: JSON) -> Usage:
        if answer.status >= 400:
            return Usage(calls=1)
        prompt, output = _prompt_tokens(answer, request), _output_tokens(answer)
        return Usage(
            uncached_input=prompt - answer.cached_tokens - answer.written_tokens,
            cached_input=answer.cached_tokens,
            cache_write=answer.written_tokens,
            output=output,
            reasoning=answer.reasoning_tokens,
            calls=1,
            dollars=None if self._price is None else self._price * (prompt + output),
        )


def body_of(answer: Answer, request: JSON, number: int) -> dict[str, object]:
    """The response body in OpenAI's shape: a completion, or an error."""
    if answer.status >= 400:
        error = {"message": answer.error, "type": "scripted", "code": answer.code or None}
        return {"error": error}
    message: dict[str, object] = {"role": "assistant", "content": answer.text}
    if answer.thoughts:
        message["reasoning_content"] = answer.thoughts
    if answer.tool_calls:
        message["tool_calls"] = list(answer.tool_calls)
    completion: dict[str, object] = {
        "id": f"chatcmpl-scripted-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": request.get("model", "scripted"),
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason}],
    }
    return completion | ({"usage": _raw_usage(answer, request)} if answer.tells_usage else {})


def _raw_usage(answer: Answer, request: JSON) -> dict[str, object]:
    prompt, output = _prompt_tokens(answer, request), _output_tokens(answer)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {
            "cached_tokens": answer.cached_tokens,
            "cache_write_tokens": answer.written_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
    }


def _start(tally: Tally, script: Script, request: JSON) -> Answer:
    answer = script(request, tally.calls)
    tally.calls += 1
    tally.requests.append(request)
    tally.in_flight += 1
    tally.most_in_flight = max(tally.most_in_flight, tally.in_flight)
    return answer


def _count(tally: Tally, reply: JSON) -> None:
    usage = reply.get("usage")
    if isinstance(usage, Mapping):
        tally.prompt_tokens += usage["prompt_tokens"]
        tally.output_tokens += usage["completion_tokens"]


def _wait_s(answer: Answer) -> float:
    return answer.latency_s + answer.seconds_per_token * _output_tokens(answer)


def _output_tokens(answer: Answer) -> int:
    if answer.output_tokens is not None:
        return answer.output_tokens
    return len(answer.text.split()) + answer.reasoning_tokens


def _prompt_tokens(answer: Answer, request: JSON) -> int:
    if answer.prompt_tokens is not None:
        return answer.prompt_tokens
    return len(json.dumps(request.get("messages", []), sort_keys=True).split())


@contextmanager
def in_a_thread(script: Script) -> Iterator[ScriptedServer]:
    """The scripted model on a loop of its own, in a thread of this process."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = ScriptedServer(script)
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
