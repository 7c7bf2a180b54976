"""How a reply leaves the gateway: in one piece or as a stream, in the caller's format."""

from __future__ import annotations

from contextlib import suppress

from aiohttp import web

from milo.gateway.formats import JSON, Wire
from milo.gateway.line import Reply

EVENT_STREAM = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
FINAL = {"x-should-retry": "false"}
"""Asks the providers' client libraries not to try again what will not get better."""

FINAL_STATUSES = frozenset({401, 429, 503, 504})


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

    A caller that has gone away is noticed by the server, which cancels the handler; until then
    what is written to it is dropped.
    """

    def __init__(self, request: web.Request, wire: Wire, asked: JSON, model: str) -> None:
        self._request = request
        self._wire = wire
        self._asked = asked
        self._encoder = wire.encoder(asked, model)
        self._response: web.StreamResponse | None = None
        self._gone = False

    async def emit(self, chunk: JSON) -> None:
        """Send what the chunk comes to."""
        await self._write(self._encoder.chunk(chunk))

    async def finish(self, reply: Reply) -> web.StreamResponse:
        """Send the end of the answer, or what kept it from ending."""
        if not reply.ok and self._response is None:
            return plain(self._wire, reply, self._asked)
        if reply.ok:
            await self._write(self._encoder.end(reply.body))
        else:
            await self._write(self._encoder.error(reply.status, reply.body))
        assert self._response is not None
        if not self._gone:
            with suppress(ConnectionError):
                await self._response.write_eof()
        return self._response

    async def _write(self, data: bytes) -> None:
        if not data or self._gone:
            return
        try:
            if self._response is None:
                self._response = web.StreamResponse(headers=EVENT_STREAM)
                await self._response.prepare(self._request)
            await self._response.write(data)
        except ConnectionError:
            self._gone = True
