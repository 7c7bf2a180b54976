"""The pieces as Ray actors: one recorder, dispatcher and conductor, a host per node, the islands.

The recorder, dispatcher and conductor stand on the driver's node, where the run directory is; a
host stands on every node that offers what `placement` asks for; islands are spread. Each actor is
the plain class of its module: what Ray adds is a process, an address and a death.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from milo.core.attempt import AttemptKey
from milo.core.errors import ClusterError, ConfigError, MiloError, ModelError, UserError
from milo.core.harness import Harness
from milo.core.ports import AttemptResult, Exit
from milo.core.task import Task
from milo.core.tree import FileTree
from milo.runtime.cluster import connect, living_nodes
from milo.runtime.conductor import Conductor
from milo.runtime.dispatch import Dispatcher
from milo.runtime.founding import Ticket, run_island
from milo.runtime.host import Host, HostInfo
from milo.runtime.island_shell import Pace
from milo.runtime.model_servers import ModelServers
from milo.runtime.parts import (
    ConductorPort,
    DispatcherPort,
    Parts,
    PeerLost,
    Peers,
    RecorderPort,
)
from milo.runtime.placement import HOST_CPUS, Offer, faulty_node, needs_of, offers, place
from milo.runtime.recorder import Recorder
from milo.runtime.remote import answer
from milo.runtime.warden import Warden

CONCURRENCY = 5000
REFS_KEPT = 512
CLOSE_S = 10.0
ROOM_S = 60.0
"""How long a node may take to make room for a host that it should have room for."""
REJOIN_WAITS_S = (5.0, 10.0, 20.0, 40.0, 60.0, 60.0)
"""How long a node that refused a host beside the run is left alone before it is asked again."""


class Remote:
    """An actor's async methods as plain async methods; errors arrive as they were raised.

    Raises `PeerLost` when the actor is dead or dies during the call.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Any public method of the actor."""
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self._actor, name)

        async def call(*args: object, **kwargs: object) -> Any:
            return await answer(method.remote(*args, **kwargs))

        return call


class RayHost:
    """A host actor as the dispatcher sees it; harnesses and tasks travel once, by reference."""

    def __init__(self, name: str, actor: Any) -> None:
        self.name = name
        self._actor = actor
        self._refs: dict[str, Any] = {}

    def _ref(self, digest: str, value: object) -> Any:
        if digest not in self._refs:
            if len(self._refs) >= REFS_KEPT:
                self._refs.pop(next(iter(self._refs)))
            self._refs[digest] = ray.put(value)
        return self._refs[digest]

    async def run(self, key: AttemptKey, harness: Harness, task: Task) -> AttemptResult:
        """One attempt."""
        references = (self._ref(key.harness, harness), self._ref(key.task_digest, task))
        running = self._actor.run.remote(key, *references)
        try:
            return cast(AttemptResult, await answer(running))
        except asyncio.CancelledError:
            ray.cancel(running)  # the caller's cancellation alone would leave the attempt running
            raise

    async def smoke(self, harness: Harness) -> str:
        """ "" or the error of the smoke test."""
        return cast(str, await answer(self._actor.smoke.remote(harness)))

    async def shell(self, tree: FileTree, command: str, timeout_s: float) -> tuple[Exit, FileTree]:
        """A command in a copy of a tree."""
        reference = self._actor.shell.remote(tree, command, timeout_s)
        return cast(tuple[Exit, FileTree], await answer(reference))


class HostActor(Host):
    """A host in a process of its own, with a warden that clears up after its death."""

    _warden: Warden | None = None

    async def start(self) -> HostInfo:
        """As a host does; the warden is there before anything that it would sweep."""
        if self._warden is None:
            self._warden = Warden(self._parts.sweeper())
        return await super().start()

    async def close(self) -> None:
        """As a host does, and nothing is left to sweep."""
        await super().close()
        if self._warden is not None:
            self._warden.dismiss()


class IslandActor:
    """An island's process."""

    async def run(self, parts: Parts, peers: Peers, ticket: Ticket, pace: Pace) -> str:
        """To the island's end."""
        return await run_island(parts, peers, ticket, pace)


def _actor(cls: type, **options: object) -> Any:
    return ray.remote(cls).options(max_concurrency=CONCURRENCY, **options)


def _on(node_id: str) -> NodeAffinitySchedulingStrategy:
    return NodeAffinitySchedulingStrategy(node_id, soft=False)


class RayStage:
    """Implements `Stage` on a Ray cluster; `harnesses` are those whose needs are known at first."""

    peers: Peers
    hosts: tuple[HostInfo, ...] = ()

    def __init__(self, parts: Parts, harnesses: Sequence[Harness] = ()) -> None:
        self._parts = parts
        self._needs = needs_of(parts.suite().tasks.values(), harnesses)
        self._owns_ray = False
        self._open = False
        self._actors: list[Any] = []
        self._host_actors: dict[str, Any] = {}
        self._recorder: Any = None
        self._put: tuple[Parts, Any] | None = None
        self._servers: ModelServers | None = None
        self._dispatcher: Any = None
        self._warden: Warden | None = None
        self._joining: dict[str, asyncio.Task[None]] = {}
        self._refused: dict[str, str] = {}

    async def open(self) -> None:
        """Connect, check, and bring the actors up in order."""
        plan = self._parts.plan
        self._owns_ray = connect(plan.cluster)
        self._open = True
        if self._owns_ray:
            self._warden = Warden(self._parts.sweeper())
        placed = place(plan.cluster, living_nodes(), self._needs)
        home = _on(ray.get_runtime_context().get_node_id())
        recorder = await self._start_recorder(home)
        await self._start_servers()
        self.hosts = tuple(await asyncio.gather(*(self._start_host(offer) for offer in placed)))
        model = self._one_model()
        await answer(self._recorder.set_model.remote(model))
        self._dispatcher = _actor(Dispatcher, num_cpus=0, scheduling_strategy=home).remote(
            self._parts.suite(), recorder, model, retries=plan.cluster.attempt_retries
        )
        for offer in placed:
            await self._seat(offer)
        conductor = _actor(Conductor, num_cpus=0, scheduling_strategy=home).remote(
            self._shared(), recorder
        )
        self._actors += [self._dispatcher, conductor]
        self.peers = Peers(
            recorder=recorder,
            dispatcher=cast(DispatcherPort, Remote(self._dispatcher)),
            conductor=cast(ConductorPort, Remote(conductor)),
        )

    def _shared(self) -> Any:
        """The parts as actors are given them: put once for all, since they hold the suite."""
        if self._put is None or self._put[0] is not self._parts:
            self._put = (self._parts, ray.put(self._parts))
        return self._put[1]

    async def _start_recorder(self, home: object) -> RecorderPort:
        """The recorder is first: every model call is paid from its ledger."""
        self._recorder = _actor(Recorder, num_cpus=0, scheduling_strategy=home).remote(
            self._shared()
        )
        self._actors.append(self._recorder)
        recorder = cast(RecorderPort, Remote(self._recorder))
        await recorder.watch(-1, 0.0)
        self._parts = self._parts.funded(recorder)
        return recorder

    async def _start_servers(self) -> None:
        """The run's model servers, before anything that would call them."""
        demand = self._parts.server_demand()
        if demand is not None:
            self._servers = ModelServers(self._parts, demand)
            self._parts = self._parts.served(await self._servers.open(living_nodes()))

    async def _start_host(self, offer: Offer) -> HostInfo:
        """A host on its node; raises `ConfigError` where the node has no room for it after all."""
        node, plan = offer.node, self._parts.plan.cluster
        actor = _actor(
            HostActor,
            num_cpus=HOST_CPUS,
            num_gpus=offer.gpus,
            resources=dict(offer.resources(plan)),
            scheduling_strategy=_on(node.node_id),
        ).remote(node.name, self._shared())
        self._host_actors[node.name] = actor
        try:
            await asyncio.wait_for(answer(actor.__ray_ready__.remote()), ROOM_S)
        except TimeoutError:
            ray.kill(actor)
            wanted = {"CPU": HOST_CPUS, "GPU": offer.gpus, **offer.resources(plan)}
            words = ", ".join(f"{amount:g} {name}" for name, amount in wanted.items() if amount)
            raise ConfigError(
                f"node {node.name}", f"{words} free for a container host", f"none in {ROOM_S:g} s"
            ) from None
        except ClusterError as fault:
            del self._host_actors[node.name]  # there is nothing to close
            raise faulty_node(node, fault) from None
        try:
            return cast(HostInfo, await answer(actor.start.remote()))
        except (UserError, ModelError) as fault:
            raise (fault if self._owns_ray else faulty_node(node, fault)) from None

    async def _seat(self, offer: Offer) -> None:
        """Let the dispatcher use a host that is up."""
        node = offer.node
        host = RayHost(node.name, self._host_actors[node.name])
        await answer(self._dispatcher.add_host.remote(host, offer.slots, offer.gpus, node.gpu_type))

    def _one_model(self) -> str:
        models = sorted({info.model for info in self.hosts})
        if len(models) != 1:
            raise ClusterError(f"the hosts pin different models: {', '.join(models) or 'none'}")
        return models[0]

    def start_island(self, ticket: Ticket, pace: Pace) -> asyncio.Task[str]:
        """An island in its own actor; cancelling the task kills the actor."""
        return asyncio.create_task(self._run_island(ticket, pace))

    async def _run_island(self, ticket: Ticket, pace: Pace) -> str:
        actor = _actor(IslandActor, num_cpus=0, scheduling_strategy="SPREAD").remote()
        try:
            reference = actor.run.remote(self._shared(), self.peers, ticket, pace)
            return cast(str, await answer(reference))
        finally:
            ray.kill(actor)

    async def tend(self) -> None:
        """Give every fit node a host, once the dispatcher has lost the one it had.

        Raises `ClusterError` where no host is left and no node will have one again: else whoever
        waits for a slot would wait for ever.
        """
        names = set(await answer(self._dispatcher.hosts.remote()))
        fit = offers(self._parts.plan.cluster, living_nodes(), self._needs)
        for name, offer in ((offer.node.name, offer) for offer in fit):
            if name not in names and name not in self._joining:
                self._joining[name] = asyncio.create_task(self._join(offer))
        refused = [self._refused.get(offer.node.name, "") for offer in fit]
        if not names and refused and all(refused):
            raise ClusterError(f"no container host is left, and none can be had: {refused[0]}")

    async def _join(self, offer: Offer) -> None:
        """Start a host beside the run; a node where it can't be had, however often it is asked for
        one, is left alone for good."""
        name = offer.node.name
        for wait_s in REJOIN_WAITS_S:
            try:
                info = await self._start_host(offer)
            except PeerLost:
                del self._joining[name]  # it died meanwhile; the next tick looks again
                return
            except MiloError as refusal:  # a provider that is busy for a while, say
                refused = str(refusal)
                await asyncio.sleep(wait_s)
                continue
            if info.model == self.hosts[0].model:
                await self._seat(offer)
                del self._joining[name]
                return
            refused = f"node {name} serves {info.model}, not {self.hosts[0].model}"
            break
        self._refused[name] = refused

    async def close(self) -> None:
        """Close hosts and recorder, kill what is left, stop Ray if we started it.

        Whatever a piece says to its closing, all of them end: the first fault of one that lives is
        raised when nothing is left.
        """
        if not self._open:
            return
        self._open = False
        for joining in self._joining.values():
            joining.cancel()
        try:
            faults = await self._close_actors()
            if self._servers is not None:
                await self._servers.close()
        finally:
            for actor in (*self._host_actors.values(), *self._actors):
                ray.kill(actor)
            if self._owns_ray:
                ray.shutdown()
            if self._warden is not None:
                self._warden.dismiss()
        for fault in faults:
            raise fault

    async def _close_actors(self) -> list[BaseException]:
        """Ask every host to close, and then the recorder, which their last calls are paid at; what
        they raised. One that is dead, or takes too long, is killed anyway: that is no fault."""
        faults = await _closed(*self._host_actors.values())
        return faults if self._recorder is None else faults + await _closed(self._recorder)


async def _closed(*actors: Any) -> list[BaseException]:
    waits = [asyncio.wait_for(answer(actor.close.remote()), CLOSE_S) for actor in actors]
    ended = await asyncio.gather(*waits, return_exceptions=True)
    lost = (PeerLost, TimeoutError)
    return [e for e in ended if isinstance(e, BaseException) and not isinstance(e, lost)]
