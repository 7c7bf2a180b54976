"""What the gateway's tests share: a clock that only moves when somebody sleeps, a caller."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from milo.gateway.line import Line
from milo.gateway.proxy import Gateway
from milo.gateway.session import Session

MakeLine = Callable[..., Line]


@dataclass
class FakeTime:
    """A clock that only moves when somebody sleeps."""

    now: float = 0.0
    sleeps: list[float] = field(default_factory=list)

    def read(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


@dataclass
class Caller:
    """What a harness does: HTTP over the socket with its token."""

    gateway: Gateway
    client: aiohttp.ClientSession

    async def post(
        self,
        session: Session | str,
        body: Mapping[str, Any] | bytes,
        path: str = "chat/completions",
    ) -> tuple[int, Any]:
        token = session if isinstance(session, str) else session.token
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"}
        async with self.client.post(f"http://gw/v1/{path}", data=data, headers=headers) as reply:
            text = await reply.text()
            is_json = reply.content_type == "application/json"
            return reply.status, json.loads(text) if is_json else text


def ask(text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}
