"""Replicas of one model server behind one upstream: least loaded first, dead ones restarted.

A replica that fails a call or its health check takes no more calls until it is healthy again; one
whose process died is started again, a bounded number of times. What failed goes back to the line,
whose retry finds another replica.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from milo.core.attempt import Usage
from milo.core.errors import ModelError
from milo.core.ports import Completion, Emit
from milo.core.servers import ModelServer
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.prices import Price

RESTARTS = 5
"""Starts after the first; a replica that was up for `CALM_S` begins to count anew."""

CHECK_S, HUNG_S, CALM_S = 5.0, 120.0, 900.0


@dataclass(kw_only=True, slots=True)
class _Replica:
    """One server with what is known of it now."""

    server: ModelServer
    http: HttpUpstream | None = None
    load: int = 0
    restarts: int = 0
    up_at: float | None = None
    unwell_at: float | None = None
    ready: bool = False
    starting: asyncio.Task[None] | None = None

    @property
    def is_starting(self) -> bool:
        """Whether a start of it is under way."""
        return self.starting is not None and not self.starting.done()

    @property
    def is_given_up(self) -> bool:
        """Whether it does not answer and will not be started again."""
        up = self.server.alive and self.ready
        return self.restarts > RESTARTS and not self.is_starting and not up


class ReplicaUpstream:
    """An `Upstream` over model servers of the run's own; it streams. One event loop.

    Replicas are started at the first call, all at once; a call waits for the first of them that is
    ready. Every `check_s` seconds each is asked for its health; one that is not well for `hung_s`
    is started anew. The servers call their model `wire_model`.
    """

    def __init__(
        self,
        servers: Sequence[ModelServer],
        label: str,
        *,
        wire_model: str,
        price: Price | None = None,
        check_s: float = CHECK_S,
        hung_s: float = HUNG_S,
    ) -> None:
        self._replicas = [_Replica(server=server) for server in servers]
        self._label = label
        self._wire_model = wire_model
        self._price = price
        self._check_s = check_s
        self._hung_s = hung_s
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

    async def check(self) -> Usage:
        """Have one replica write one token."""
        async with self._taken() as http:
            return await http.check()

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
            if all(r.is_given_up for r in self._replicas) or self._closed:
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
        """Start a replica that is dead or has hung, ask a living one for its health.

        One that was up before this upstream came is started too: only that tells its address.
        """
        if replica.is_starting:
            return
        if replica.server.alive and replica.http is not None:
            replica.ready = await replica.server.healthy()
            replica.unwell_at = None if replica.ready else replica.unwell_at or _now()
            self._changed.set()
            if replica.unwell_at is None or _now() - replica.unwell_at < self._hung_s:
                return
        replica.ready = False
        if replica.up_at is not None and _now() - replica.up_at > CALM_S:
            replica.restarts = 0
        replica.up_at = replica.unwell_at = None
        if replica.restarts <= RESTARTS and not replica.is_starting:
            replica.restarts += 1
            replica.starting = asyncio.ensure_future(self._start(replica))

    def _connected(self, server: ModelServer) -> HttpUpstream:
        return HttpUpstream(
            server.base_url,
            self._label,
            wire_model=self._wire_model,
            api_key=server.api_key,
            price=self._price,
        )

    async def _start(self, replica: _Replica) -> None:
        try:
            await replica.server.start()
        except ModelError as error:
            self._problem = str(error)
        else:
            if replica.http is not None:
                await replica.http.close()
            replica.http = self._connected(replica.server)
            replica.ready, replica.up_at = True, _now()
        finally:
            self._changed.set()


def _now() -> float:
    return asyncio.get_running_loop().time()
