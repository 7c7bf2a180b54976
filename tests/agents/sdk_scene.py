"""A gateway on a loopback port before a scripted model, for the providers' own client libraries."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from milo.core.attempt import Usage
from milo.core.ports import Caps
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.line import Line, Policy
from milo.gateway.pins import Pins
from milo.gateway.proxy import Gateway
from milo.gateway.session import Session
from milo.rollout.forward import Relay
from milo.testing.scripted_model import Answer, Script, ScriptedServer

KEY = "canary-provider-key-77aa"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n not really a picture").decode()
COUNTS: Mapping[str, Any] = {
    "prompt_tokens": 2006,
    "cached_tokens": 1000,
    "written_tokens": 900,
    "output_tokens": 300,
    "reasoning_tokens": 192,
}
KINDS = Usage(
    uncached_input=106,
    cached_input=1000,
    cache_write=900,
    output=300,
    reasoning=192,
    calls=1,
    dollars=None,
)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a harness knows (`root` and its session's token), and what we see beside it."""

    root: str
    session: Session
    gateway: Gateway
    server: ScriptedServer
    clients: list[Any] = field(default_factory=list)

    def kept(self, client: Any) -> Any:
        """A client that is closed with the scene."""
        self.clients.append(client)
        return client

    @property
    def token(self) -> str:
        return self.session.token

    @property
    def sent(self) -> Mapping[str, Any]:
        """The last request that reached the provider."""
        return self.server.tally.requests[-1]

    async def usage(self) -> Usage:
        return (await self.session.close()).usage


@asynccontextmanager
async def scene(script: Script, caps: Caps = Caps()) -> AsyncIterator[Scene]:  # noqa: B008
    """Everything up, and down again. Waits between retries are short."""
    folder = Path(tempfile.mkdtemp(prefix="gw-"))
    async with ScriptedServer(script) as server:
        upstream = HttpUpstream(server.base_url, "frozen", wire_model="m", api_key=KEY)
        line = Line(
            upstream=upstream,
            pins=Pins(model="frozen"),
            rng=np.random.default_rng(0),
            policy=Policy(tries=3, first_wait_s=0.001),
            secrets=(KEY,),
        )
        gateway = Gateway(line, folder / "s")
        await gateway.start()
        relay = Relay(gateway.socket)
        port = await relay.listen_tcp()
        session = await gateway.open_session("sdk", caps, 600)
        here = Scene(
            root=f"http://127.0.0.1:{port}", session=session, gateway=gateway, server=server
        )
        try:
            yield here
        finally:
            for client in here.clients:
                await client.close()
            await relay.close()
            await gateway.stop()
            await upstream.close()
            shutil.rmtree(folder)


def call(nth: int, name: str, **arguments: str) -> dict[str, Any]:
    """A tool call as chat completions have it."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call_{nth}", "type": "function", "function": function}


def calling(*calls: dict[str, Any]) -> Answer:
    """An answer that calls tools and says nothing."""
    return Answer(tool_calls=calls, finish_reason="tool_calls", **COUNTS)


def writes_a_file(folder: Path) -> Callable[[str, Mapping[str, Any]], str]:
    """The one tool of the file-writing task: it really writes."""

    def run(name: str, arguments: Mapping[str, Any]) -> str:
        assert name == "write_file"
        (folder / arguments["path"]).write_text(arguments["text"])
        return f"wrote {arguments['path']}"

    return run


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
    "required": ["path", "text"],
}
TASK = (
    calling(
        call(1, "write_file", path="a.txt", text="A"), call(2, "write_file", path="b.txt", text="B")
    ),
    calling(call(3, "write_file", path="c.txt", text="C")),
    Answer(text="All three files are written.", **COUNTS),
)
"""A file-writing task in three turns, the first with two calls at once."""

FAILURES = (400, 401, 404, 429, 500)
"""A provider's errors, and what a harness is told: its own mistakes as they are, and 503 for what
is none of its doing."""


def told(status: int) -> int:
    return 400 if status == 400 else 503
