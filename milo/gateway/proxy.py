"""The gateway of one node: three request formats over a unix socket, one token per session.

A harness reaches it through its sandbox's loopback. Its token (``Authorization: Bearer`` or
``x-api-key``) names its session and nothing else; the provider's key never passes here.
"""

from __future__ import annotations

import secrets
import stat
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

from aiohttp import web

from milo.core.errors import UserError
from milo.core.ports import Caps
from milo.gateway.answering import Door, plain
from milo.gateway.chat_wire import ChatWire
from milo.gateway.formats import BadRequest, Wire
from milo.gateway.line import Line
from milo.gateway.messages_wire import MessagesWire
from milo.gateway.pins import parse_request
from milo.gateway.responses_wire import ResponsesWire
from milo.gateway.session import Session
from milo.gateway.tokens import count_tokens
from milo.gateway.usage import request_text
from milo.gateway.wire import error_body

MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_SOCKET_PATH = 100
COUNTING = "/count_tokens"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Answering = Callable[[Mapping[str, object]], Awaitable[Mapping[str, object]]]


def wires() -> tuple[Wire, ...]:
    """The formats that are served; the first is that of requests to unknown paths."""
    return (ChatWire(), ResponsesWire(), MessagesWire())


class Gateway:
    """A `ModelGateway` on the event loop that starts it. Sessions may be opened concurrently.

    It owns its socket file; the upstream belongs to the caller. Sessions that are still open when
    it stops are closed without anybody reading their reports. `doors` answer questions of
    token-holders that are none to the model: JSON posted to a path, JSON back.
    """

    def __init__(
        self,
        line: Line,
        socket: Path,
        *,
        max_body_bytes: int = MAX_BODY_BYTES,
        doors: Mapping[str, Answering] | None = None,
    ) -> None:
        self._line = line
        self._socket = socket
        self._max_body = max_body_bytes
        self._doors = dict(doors or {})
        self._sessions: dict[str, Session] = {}
        self._runner: web.AppRunner | None = None

    @property
    def model(self) -> str:
        """The pinned model with its parameters."""
        return self._line.upstream.model

    @property
    def model_name(self) -> str:
        """The model's name as harnesses see it."""
        return self._line.pins.model

    @property
    def socket(self) -> Path:
        """The unix socket that environments forward to; open to every user of the host."""
        return self._socket

    async def start(self) -> None:
        """Listen; raises `UserError` where the path is too long for a unix socket."""
        if len(str(self._socket).encode()) > MAX_SOCKET_PATH:
            raise UserError(
                f"socket {self._socket}",
                f"a path of at most {MAX_SOCKET_PATH} bytes",
                f"{len(str(self._socket).encode())} bytes",
            )
        if self._socket.exists() and stat.S_ISSOCK(self._socket.stat().st_mode):
            self._socket.unlink()
        self._runner = web.AppRunner(
            self._app(), access_log=None, handler_cancellation=True, shutdown_timeout=1.0
        )
        await self._runner.setup()
        await web.UnixSite(self._runner, str(self._socket)).start()
        # The harness runs as another user; what protects the model is the token.
        self._socket.chmod(0o666)

    async def stop(self) -> None:
        """Close all sessions and the socket; safe to call twice."""
        for session in tuple(self._sessions.values()):
            await session.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        self._socket.unlink(missing_ok=True)

    async def open_session(self, scope: str, caps: Caps, deadline_s: float) -> Session:
        """A session of `deadline_s` seconds under a fresh random token."""
        token = secrets.token_urlsafe(32)
        session = Session(self._line, scope, caps, deadline_s, token, self._forget)
        self._sessions[token] = session
        return session

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session.token, None)

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=self._max_body, middlewares=[_errors_in_kind])
        for wire in wires():
            app.router.add_post(wire.route, partial(self._serve, wire))
        messages = MessagesWire()
        app.router.add_post(messages.route + COUNTING, partial(self._count, messages))
        app.router.add_get("/v1/models", self._models)
        for path, answering in self._doors.items():
            app.router.add_post(path, partial(self._ask, answering))
        return app

    def _session(self, request: web.Request) -> Session | None:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        given = token.strip() if kind.lower() == "bearer" else request.headers.get("x-api-key", "")
        return self._sessions.get(given)

    async def _models(self, request: web.Request) -> web.StreamResponse:
        if self._session(request) is None:
            return _unknown_token(wires()[0])
        openai = {"id": self.model_name, "object": "model", "created": 0, "owned_by": "milo"}
        anthropic = {"type": "model", "display_name": self.model_name, "created_at": "1970-01-01"}
        ends = {"first_id": self.model_name, "last_id": self.model_name, "has_more": False}
        return web.json_response({"object": "list", "data": [{**openai, **anthropic}], **ends})

    async def _ask(self, answering: Answering, request: web.Request) -> web.StreamResponse:
        """A question that is none to the model: no call, and free."""
        if self._session(request) is None:
            return _unknown_token(wires()[0])
        try:
            asked = parse_request(await request.read())
        except BadRequest as error:
            return web.json_response(error_body(str(error), "invalid_json"), status=400)
        return web.json_response(dict(await answering(asked)))

    async def _count(self, wire: Wire, request: web.Request) -> web.StreamResponse:
        """An estimate of a request's input tokens: no call, and free."""
        session = self._session(request)
        if session is None:
            return _unknown_token(wire)
        try:
            asked = {"max_tokens": 1, **parse_request(await request.read())}
            chat = wire.request(asked).chat
        except BadRequest as error:
            return plain(wire, session.refuse({}, 400, str(error), "invalid_request"), {})
        return web.json_response({"input_tokens": count_tokens(request_text(chat))})

    async def _serve(self, wire: Wire, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        if session is None:
            return _unknown_token(wire)
        asked: dict[str, object] = {}
        try:
            asked = parse_request(await request.read())
            translated = wire.request(asked)
        except BadRequest as error:
            code = "invalid_request" if asked else "invalid_json"
            reply = session.refuse(asked, 400, str(error), code, error.param)
            return plain(wire, reply, asked)
        if asked.get("stream") is not True:
            reply = await session.ask(translated.chat, noted=translated.noted)
            return plain(wire, reply, asked)
        door = Door(request, wire, asked, self.model_name)
        return await door.answer(
            lambda emit: session.ask(translated.chat, noted=translated.noted, emit=emit)
        )


def _unknown_token(wire: Wire) -> web.Response:
    body = error_body("the token is unknown or its session is closed", "invalid_api_key")
    return web.json_response(wire.error(401, body), status=401)


@web.middleware
async def _errors_in_kind(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer what aiohttp refuses (no such route, body too large) in the format's error shape."""
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge as error:
        status, body = 413, error_body(f"the body is too large: {error.text}", "request_too_large")
    except web.HTTPException as error:
        served = ", ".join(f"POST {wire.route}" for wire in wires())
        what = f"{request.method} {request.path} is not served; served are {served}, GET /v1/models"
        status, body = error.status, error_body(what, "not_found")
    matching = [wire for wire in wires() if request.path.startswith(wire.route)]
    return web.json_response((matching or wires())[0].error(status, body), status=status)
