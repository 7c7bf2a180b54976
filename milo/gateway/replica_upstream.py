"""Replicas of one model server behind one upstream: least loaded first, dead ones restarted.

A replica that fails a call or its health check takes no more calls until it is healthy again; one
whose process died is started again, a bounded number of times. What failed goes back to the line,
whose retry finds another replica.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from milo.core.errors import ModelError
from milo.core.ports import Completion, Emit
from milo.core.servers import ModelServer
from milo.gateway.http_upstream import HttpUpstream

RESTARTS = 5
CHECK_S = 5.0
Connect = Callable[[str], HttpUpstream]


@dataclass(kw_only=True, slots=True)
class _Replica:
    """One server with what is known of it now."""

    server: ModelServer
    http: HttpUpstream | None = None
    load: int = 0
    restarts: int = 0
    ready: bool = False
    starting: asyncio.Task[None] | None = None


class ReplicaUpstream:
    """An `Upstream` that owns its servers; it streams. One event loop.

    `connect` makes the client for a server's root. Replicas are started at the first call, all at
    once; a call waits for the first of them that is ready. Every `check_s` seconds each is asked
    for its health.
    """

    def __init__(
        self,
        servers: Sequence[ModelServer],
        label: str,
        connect: Connect,
        *,
        check_s: float = CHECK_S,
    ) -> None:
        self._replicas = [_Replica(server=server) for server in servers]
        self._label = label
        self._connect = connect
        self._check_s = check_s
        self._watch: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._problem = ""
        self._closed = False

    @property
    def model(self) -> str:
        """The label."""
        return self._label

    @property
    def loads(self) -> tuple[int, ...]:
        """Calls in flight, by replica."""
        return tuple(replica.load for replica in self._replicas)

    @property
    def ready(self) -> tuple[bool, ...]:
        """Which replicas take calls."""
        return tuple(replica.ready and replica.server.alive for replica in self._replicas)

    async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
        """Answer from the least loaded replica; raises `ModelError` where none can be kept up."""
        async with self._taken() as http:
            return await http.complete(request, scope, nth)

    async def stream(
        self, request: Mapping[str, object], scope: str, nth: int, emit: Emit
    ) -> Completion:
        """Stream from the least loaded replica."""
        async with self._taken() as http:
            return await http.stream(request, scope, nth, emit)

    async def check(self) -> None:
        """Have one replica write one token."""
        async with self._taken() as http:
            await http.check()

    async def close(self) -> None:
        """Stop every server; safe to call twice."""
        self._closed = True
        tasks = [replica.starting for replica in self._replicas if replica.starting]
        tasks += [self._watch] if self._watch else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for replica in self._replicas:
            if replica.http is not None:
                await replica.http.close()
            await replica.server.stop()

    @asynccontextmanager
    async def _taken(self) -> AsyncIterator[HttpUpstream]:
        replica = await self._least_loaded()
        assert replica.http is not None
        replica.load += 1
        try:
            yield replica.http
        except ModelError:
            replica.ready = False  # until its health says otherwise
            raise
        finally:
            replica.load -= 1

    async def _least_loaded(self) -> _Replica:
        """Waits for a replica that is ready; ended by the caller's deadline, or when none is
        left that could become ready."""
        while True:
            if self._watch is None:
                self._watch = asyncio.ensure_future(self._watching())
            ready = [r for r, up in zip(self._replicas, self.ready, strict=True) if up]
            if ready:
                return min(ready, key=lambda replica: replica.load)
            for replica in self._replicas:
                await self._mend(replica)
            if all(r.restarts > RESTARTS for r in self._replicas) or self._closed:
                raise ModelError(f"no replica of {self._label} can be kept up: {self._problem}")
            self._changed.clear()
            if not any(self.ready):
                await self._changed.wait()

    async def _watching(self) -> None:
        """Mends what is broken, until `close`."""
        while True:
            for replica in self._replicas:
                await self._mend(replica)
            await asyncio.sleep(self._check_s)

    async def _mend(self, replica: _Replica) -> None:
        """Start a replica that is dead, ask a living one for its health."""
        if replica.starting is not None and not replica.starting.done():
            return
        if not replica.server.alive:
            replica.ready = False
            if replica.restarts <= RESTARTS:
                replica.starting = asyncio.ensure_future(self._start(replica))
            return
        replica.ready = replica.http is not None and await replica.server.healthy()
        self._changed.set()

    async def _start(self, replica: _Replica) -> None:
        replica.restarts += 1
        try:
            await replica.server.start()
        except ModelError as error:
            self._problem = str(error)
        else:
            if replica.http is not None:
                await replica.http.close()
            replica.http = self._connect(replica.server.base_url)
            replica.ready = True
        finally:
            self._changed.set()
