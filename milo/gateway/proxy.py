"""The gateway of one node: OpenAI's chat completions over a unix socket, one token per session.

A harness reaches it through its sandbox's loopback. Its bearer token names its session and
nothing else; the provider's key never passes here.
"""

from __future__ import annotations

import secrets
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from aiohttp import web

from milo.core.errors import UserError
from milo.core.ports import Caps
from milo.gateway.line import Line, Reply
from milo.gateway.pins import BadRequest, parse_request
from milo.gateway.session import Session
from milo.gateway.wire import error_body, sse_chunks

MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_SOCKET_PATH = 100
ROUTES = "POST /v1/chat/completions and GET /v1/models"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gateway:
    """A `ModelGateway` on the event loop that starts it. Sessions may be opened concurrently.

    It owns its socket file; the upstream belongs to the caller. Sessions that are still open when
    it stops are closed without anybody reading their reports.
    """

    def __init__(self, line: Line, socket: Path, *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._line = line
        self._socket = socket
        self._max_body = max_body_bytes
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
        app = web.Application(client_max_size=self._max_body, middlewares=[_errors_as_openai])
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        return app

    def _session(self, request: web.Request) -> Session | None:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        return self._sessions.get(token.strip()) if kind.lower() == "bearer" else None

    async def _models(self, request: web.Request) -> web.StreamResponse:
        if self._session(request) is None:
            return _unknown_token()
        model = {"id": self.model_name, "object": "model", "created": 0, "owned_by": "milo"}
        return web.json_response({"object": "list", "data": [model]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        if session is None:
            return _unknown_token()
        try:
            asked = parse_request(await request.read())
        except BadRequest as error:
            reply = session.refuse({}, 400, str(error), "invalid_json")
            return _plain(reply)
        reply = await session.ask(asked)
        if asked.get("stream") is True and reply.ok:
            return await _stream(request, reply, asked)
        return _plain(reply)


def _plain(reply: Reply) -> web.Response:
    return web.json_response(dict(reply.body), status=reply.status)


async def _stream(
    request: web.Request, reply: Reply, asked: Mapping[str, object]
) -> web.StreamResponse:
    options = asked.get("stream_options")
    include_usage = isinstance(options, Mapping) and options.get("include_usage") is True
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
    )
    await response.prepare(request)
    await response.write(b"".join(sse_chunks(reply.body, include_usage)))
    await response.write_eof()
    return response


def _unknown_token() -> web.Response:
    body = error_body("the token is unknown or its session is closed", "invalid_api_key")
    return web.json_response(body, status=401)


@web.middleware
async def _errors_as_openai(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer what aiohttp refuses (no such route, body too large) in OpenAI's error shape."""
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge as error:
        body = error_body(f"the body is too large: {error.text}", "request_too_large")
        return web.json_response(body, status=413)
    except web.HTTPException as error:
        what = f"{request.method} {request.path} is not served; served are {ROUTES}"
        return web.json_response(error_body(what, "not_found"), status=error.status)
