"""Model servers on the cluster: replicas as actors, placed where their resources are.

Each replica's actor owns one server process on its node and starts it anew where it died; whoever
routes calls (every node's gateway) asks it for the address that holds now. Servers are up before
any host is, so that a model that can't be served costs nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from milo.core.errors import ClusterError, ConfigError, MiloError, ModelError
from milo.core.servers import ModelServer, ServerDemand
from milo.runtime.parts import Parts, PeerLost
from milo.runtime.placement import Node
from milo.runtime.remote import answer

ROOM_S, STOP_S = 60.0, 20.0
RETURN_S, RETRY_S = 180.0, 1.0
CONCURRENCY = 100
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """A server as its replica sees it now."""

    base_url: str
    api_key: str
    alive: bool
    well: bool = False


class Replica:
    """One server process on this node, in its own actor. `alone` says that no other node is there
    to reach it."""

    def __init__(self, parts: Parts, nth: int, alone: bool) -> None:
        host = LOOPBACK if alone else str(ray.util.get_node_ip_address())
        self._server: ModelServer = parts.model_server(host, nth)
        self._starting = asyncio.Lock()

    async def start(self) -> Standing:
        """Have it up and healthy; whoever asks while it comes up waits for the same start."""
        async with self._starting:
            if not (self._server.alive and await self._server.healthy()):
                await self._server.start()
            return self._standing(well=True)

    async def look(self) -> Standing:
        """How it stands; a server that is being started is not well yet."""
        up = self._server.alive and not self._starting.locked()
        return self._standing(well=up and await self._server.healthy())

    async def stop(self) -> None:
        """End it."""
        await self._server.stop()

    def _standing(self, *, well: bool) -> Standing:
        server = self._server
        return Standing(
            base_url=server.base_url, api_key=server.api_key, alive=server.alive, well=well
        )


class RemoteServer:
    """Implements `ModelServer` over a replica: any number of gateways share it.

    `start` has the replica start it where it is down, and takes up the address that holds; `stop`
    only lets go, for the run ends its servers. Travels between processes.
    """

    def __init__(self, name: str, actor: Any) -> None:
        self._name = name
        self._actor = actor
        self._known: Standing | None = None

    @property
    def base_url(self) -> str:
        """The root at which it was last seen."""
        return self._known.base_url if self._known is not None else ""

    @property
    def api_key(self) -> str:
        """What it demanded when it was last seen."""
        return self._known.api_key if self._known is not None else ""

    @property
    def alive(self) -> bool:
        """Whether it was up where it was last seen."""
        return self._known is not None

    async def start(self) -> None:
        """Have it up; raises `ModelError` where it can't be had.

        A replica whose process died is made anew by Ray, which takes a while: it is waited for.
        """
        self._known = None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RETURN_S
        while self._known is None:
            try:
                self._known = cast(Standing, await answer(self._actor.start.remote()))
            except PeerLost as lost:
                if loop.time() >= deadline:
                    raise ModelError(f"{self._name} is gone: {lost}") from None
                await asyncio.sleep(RETRY_S)
            except ClusterError as refused:
                raise ModelError(f"{self._name} can't be made anew: {refused}") from None

    async def healthy(self) -> bool:
        """Whether it is well at the address that is known here; another one has to be taken up by
        `start`."""
        try:
            now = cast(Standing, await answer(self._actor.look.remote()))
        except ClusterError:  # lost, or not made anew: `start` says which
            self._known = None
            return False
        if not now.alive or now.base_url != self.base_url:
            self._known = None
            return False
        return now.well

    async def stop(self) -> None:
        """Let go of it."""
        self._known = None


class ModelServers:
    """The replicas of one run. One owner."""

    def __init__(self, parts: Parts, demand: ServerDemand) -> None:
        self._parts = parts
        self._demand = demand
        self._group: PlacementGroup | None = None
        self._actors: list[Any] = []
        self._shared: Any = None

    async def open(self, nodes: Sequence[Node]) -> tuple[RemoteServer, ...]:
        """Place and start all replicas; raises `ConfigError` where there is no room for them, and
        `ModelError` where one doesn't come up."""
        check_room(self._demand, nodes)
        self._group = await self._room()
        # Held as long as the replicas: one that is made anew is given them again.
        self._shared = ray.put(self._parts)
        servers = [self._replica(nth, len(nodes) == 1) for nth in range(self._demand.replicas)]
        await asyncio.gather(*(server.start() for server in servers))
        return tuple(servers)

    async def close(self) -> None:
        """End all servers; safe to call twice."""
        ending = [answer(actor.stop.remote()) for actor in self._actors]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*ending, return_exceptions=True), STOP_S)
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []
        self._shared = None
        if self._group is not None:
            remove_placement_group(self._group)
            self._group = None

    async def _room(self) -> PlacementGroup:
        demand = self._demand
        group = placement_group([dict(demand.resources)] * demand.replicas, strategy="PACK")
        try:
            await asyncio.wait_for(answer(group.ready()), ROOM_S)
        except TimeoutError:
            remove_placement_group(group)
            raise ConfigError(
                demand.name, f"{_words(demand)} free", f"others hold it for {ROOM_S:g} s or more"
            ) from None
        except MiloError:
            remove_placement_group(group)
            raise
        return group

    def _replica(self, nth: int, alone: bool) -> RemoteServer:
        wanted = dict(self._demand.resources)
        strategy = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=nth)
        made = ray.remote(Replica).options(
            num_cpus=wanted.pop("CPU", 0),
            num_gpus=wanted.pop("GPU", 0),
            resources=wanted,
            scheduling_strategy=strategy,
            max_restarts=-1,
            max_concurrency=CONCURRENCY,
        )
        actor = made.remote(self._shared, nth, alone)
        self._actors.append(actor)
        return RemoteServer(f"replica {nth} of {self._demand.name}", actor)


def check_room(demand: ServerDemand, nodes: Sequence[Node]) -> None:
    """Raise `ConfigError` where the nodes could not hold all replicas even if nothing else ran."""
    places = [_places(demand, node) for node in nodes]
    if sum(places) < demand.replicas:
        each = "; ".join(
            f"node {node.name} with {_offer(demand, node)}"
            for node, _ in zip(nodes, places, strict=True)
        )
        raise ConfigError(demand.name, _words(demand), f"room for {sum(places)} ({each})")


def _places(demand: ServerDemand, node: Node) -> int:
    needs = {name: amount for name, amount in demand.resources.items() if amount > 0}
    rooms = [node.resources.get(name, 0.0) / amount for name, amount in needs.items()]
    return int(min(rooms, default=float(demand.replicas)) + 1e-6)


def _words(demand: ServerDemand) -> str:
    each = ", ".join(f"{amount:g} {name}" for name, amount in demand.resources.items() if amount)
    return f"room for {demand.replicas} with {each} each"


def _offer(demand: ServerDemand, node: Node) -> str:
    return ", ".join(f"{node.resources.get(name, 0.0):g} {name}" for name in demand.resources)
