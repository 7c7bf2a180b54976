"""A gateway without a model: answers chat completions from a script, for tests of other rooms.

Speaks just enough HTTP over its unix socket for a harness that posts to
``/v1/chat/completions`` with its session's token.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from milo.core.attempt import Usage
from milo.core.evidence import Exchange
from milo.core.ports import Caps, SessionReport

Script = Callable[[str], str]


def silent(prompt: str) -> str:
    """A script that always says nothing."""
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FixedClock:
    """A clock that stands still."""

    seconds: float = 1_700_000_000.0

    def now(self) -> float:
        """Always the same time."""
        return self.seconds


class ScriptedSession:
    """Implements `ports.ModelSession`."""

    def __init__(self, gateway: ScriptedGateway, token: str) -> None:
        self.token = token
        self.exchanges: list[Exchange] = []
        self._gateway = gateway

    async def close(self) -> SessionReport:
        """Forget the token; the report carries what the gateway was told to put in."""
        self._gateway.sessions.pop(self.token, None)
        usage = sum((e.usage for e in self.exchanges), Usage())
        return replace(self._gateway.ending, usage=usage, exchanges=tuple(self.exchanges))


class ScriptedGateway:
    """Implements `ports.ModelGateway`: `script` maps the last message to the answer.

    `ending` is put into every session's report (caps that fired, faults, flags). One owner:
    `start` before use, `stop` after.
    """

    model = "scripted"

    def __init__(
        self,
        socket: Path,
        script: Script = silent,
        ending: SessionReport = SessionReport(usage=Usage(), exchanges=()),  # noqa: B008
    ) -> None:
        self.socket = socket
        self.ending = ending
        self.sessions: dict[str, ScriptedSession] = {}
        self.scopes: list[str] = []
        self._script = script
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Listen on the socket."""
        self._server = await asyncio.start_unix_server(self._serve, str(self.socket))

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def open_session(self, scope: str, caps: Caps, deadline_s: float) -> ScriptedSession:
        """A session with a token of its own."""
        self.scopes.append(scope)
        session = ScriptedSession(self, f"token-{len(self.scopes)}")
        self.sessions[session.token] = session
        return session

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            headers = _headers(head)
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            status, answer = self._answer(headers.get("authorization", ""), body)
            data = json.dumps(answer).encode()
            start = f"HTTP/1.1 {status} .\r\nContent-Type: application/json\r\n"
            end = f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
            writer.write((start + end).encode() + data)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return  # the harness went away in the middle of its request
        finally:
            writer.close()

    def _answer(self, authorization: str, body: bytes) -> tuple[int, Mapping[str, object]]:
        session = self.sessions.get(authorization.removeprefix("Bearer "))
        if session is None:
            return 401, {"error": {"message": "unknown token"}}
        request = json.loads(body)
        text = self._script(request["messages"][-1]["content"])
        answer = {
            "object": "chat.completion",
            "model": self.model,
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text}},
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5},
        }
        usage = Usage(uncached_input=10, output=5, calls=1)
        session.exchanges.append(
            Exchange(request=request, response=answer, status=200, seconds=0.0, usage=usage)
        )
        return 200, answer


def _headers(head: str) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in head.split("\r\n")[1:] if ":" in line)
    return {name.strip().lower(): value.strip() for name, value in pairs}
