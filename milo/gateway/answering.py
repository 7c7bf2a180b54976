"""How a reply leaves the gateway: in one piece or as a stream, in the caller's format."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress

from aiohttp import web

from milo.core.ports import Emit
from milo.gateway.formats import JSON, Wire
from milo.gateway.line import Reply

EVENT_STREAM = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
FINAL = {"x-should-retry": "false"}
"""Asks the providers' client libraries not to try again what will not get better."""

FINAL_STATUSES = frozenset({401, 429, 503, 504})
Ask = Callable[[Emit], Coroutine[object, object, Reply]]
MOST_HELD = 64 * 1024
"""Bytes that may wait for a slow caller before the provider's stream is left alone."""


def plain(wire: Wire, reply: Reply, asked: JSON) -> web.Response:
    """A reply in one piece."""
    if reply.ok:
        return web.json_response(dict(wire.answer(reply.body, asked)))
    headers = FINAL if reply.status in FINAL_STATUSES else None
    shown = dict(wire.error(reply.status, reply.body))
    return web.json_response(shown, status=reply.status, headers=headers)


class Door:
    """One streamed answer. Nothing is sent before the first chunk, so that a call that fails
    before it is answered with its status. One owner.

    Chunks that come together leave together: a gateway that has more to do than it can sends less
    often, instead of falling behind. A caller that has gone away is noticed by the server, which
    cancels the handler; until then what is written to it is dropped.
    """

    def __init__(self, request: web.Request, wire: Wire, asked: JSON, model: str) -> None:
        self._request = request
        self._wire = wire
        self._asked = asked
        self._encoder = wire.encoder(asked, model)
        self._response: web.StreamResponse | None = None
        self._waiting: list[bytes] = []
        self._held = 0
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._gone = False

    async def answer(self, ask: Ask) -> web.StreamResponse:
        """Have the call made, and send its answer as it comes."""
        asking = asyncio.ensure_future(ask(self._emit))
        asking.add_done_callback(lambda _: self._news.set())
        try:
            while not asking.done():
                await self._news.wait()  # for a chunk, or the end of the call
                self._news.clear()
                if not asking.done():
                    await self._send()
            return await self._finish(asking.result())
        finally:
            asking.cancel()

    async def _emit(self, chunk: JSON) -> None:
        """Have sent what the chunk comes to; waits while too much of it does."""
        data = self._encoder.chunk(chunk)
        if not data or self._gone:
            return
        self._waiting.append(data)
        self._held += len(data)
        self._news.set()
        while self._held > MOST_HELD and not self._gone:
            self._room.clear()
            await self._room.wait()  # set when all of it is sent, or has nowhere to go

    async def _finish(self, reply: Reply) -> web.StreamResponse:
        """Send the end of the answer, or what kept it from ending."""
        if not reply.ok and self._response is None and not self._waiting:
            return plain(self._wire, reply, self._asked)
        if reply.ok:
            self._waiting.append(self._encoder.end(reply.body))
        else:
            self._waiting.append(self._encoder.error(reply.status, reply.body))
        await self._send()
        assert self._response is not None
        if not self._gone:
            with suppress(ConnectionError):
                await self._response.write_eof()
        return self._response

    async def _send(self) -> None:
        """Write what waits."""
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._held = 0
        try:
            if self._response is None and data:
                self._response = web.StreamResponse(headers=EVENT_STREAM)
                await self._response.prepare(self._request)
            if self._response is not None and not self._gone:
                await self._response.write(data)
        except ConnectionError:
            self._gone = True
        self._room.set()
