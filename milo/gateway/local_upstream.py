"""The embedded model as an upstream: starts its server, and starts it again where it crashed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from milo.core.errors import ModelError
from milo.core.ports import Completion
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.llama_server import EmbeddedServer
from milo.gateway.prices import FREE

RESTARTS = 5


class LocalUpstream:
    """An `Upstream` that owns an `EmbeddedServer`. One event loop."""

    def __init__(self, server: EmbeddedServer, label: str) -> None:
        self.server = server
        self._label = label
        self._http: HttpUpstream | None = None
        self._restarts = 0
        self._starting = asyncio.Lock()

    @property
    def model(self) -> str:
        """The label."""
        return self._label

    async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
        """Answer from the embedded server; raises `ModelError` where it can't be kept alive."""
        http = await self._connected()
        return await http.complete(request, scope, nth)

    async def check(self) -> None:
        """Start the server if need be, and have it write one token."""
        await (await self._connected()).check()

    async def close(self) -> None:
        """Stop the server."""
        if self._http is not None:
            await self._http.close()
            self._http = None
        await self.server.stop()

    async def _connected(self) -> HttpUpstream:
        async with self._starting:
            if self._http is None or not self.server.alive:
                await self._start()
            assert self._http is not None
            return self._http

    async def _start(self) -> None:
        if self._http is not None:
            await self._http.close()
            self._restarts += 1
        if self._restarts > RESTARTS:
            raise ModelError(
                f"the embedded model crashed {self._restarts} times; see {self.server.log_path}"
            )
        await self.server.start()
        self._http = HttpUpstream(self.server.base_url, self._label, wire_model="local", price=FREE)
