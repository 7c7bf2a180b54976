"""Where the pieces stand: in one process (`InlineStage`), or as Ray actors (`ray_stage`)."""

from __future__ import annotations

import asyncio
from typing import Protocol

from milo.runtime.conductor import Conductor
from milo.runtime.dispatch import Dispatcher
from milo.runtime.founding import Ticket, run_island
from milo.runtime.host import Host, HostInfo
from milo.runtime.island_shell import Pace
from milo.runtime.parts import Parts, Peers
from milo.runtime.recorder import Recorder


class Stage(Protocol):
    """Brings the pieces up and down; used by the driver only."""

    peers: Peers
    hosts: tuple[HostInfo, ...]

    async def open(self) -> None:
        """Recorder, hosts, dispatcher and conductor are up; raises `MiloError` if they can't be."""
        ...

    def start_island(self, ticket: Ticket, pace: Pace) -> asyncio.Task[str]:
        """Run an island; the task ends with the reason why it closed."""
        ...

    async def tend(self) -> None:
        """Look after the hosts: replace dead ones, use new nodes."""
        ...

    async def close(self) -> None:
        """Take everything down; safe to call twice."""
        ...


class InlineStage:
    """Everything on one event loop in this process: for tests, and where Ray can't run."""

    peers: Peers
    hosts: tuple[HostInfo, ...] = ()

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._recorder: Recorder | None = None
        self._host: Host | None = None

    async def open(self) -> None:
        """One host with the plan's slots."""
        plan = self._parts.plan
        self._recorder = Recorder(self._parts)
        self._parts = self._parts.funded(self._recorder)
        self._host = Host("local", self._parts)
        info = await self._host.start()
        self.hosts = (info,)
        await self._recorder.set_model(info.model)
        dispatcher = Dispatcher(
            self._parts.suite(), self._recorder, info.model, retries=plan.cluster.attempt_retries
        )
        await dispatcher.add_host(self._host, plan.cluster.slots)
        conductor = Conductor(self._parts, self._recorder)
        self.peers = Peers(recorder=self._recorder, dispatcher=dispatcher, conductor=conductor)

    def start_island(self, ticket: Ticket, pace: Pace) -> asyncio.Task[str]:
        """Run an island on this loop."""
        return asyncio.create_task(run_island(self._parts, self.peers, ticket, pace))

    async def tend(self) -> None:
        """Nothing to do: the one host lives in this process."""

    async def close(self) -> None:
        """End the host and release the run directory."""
        if self._host is not None:
            await self._host.close()
            self._host = None
        if self._recorder is not None:
            await self._recorder.close()
            self._recorder = None
