"""The sandbox on a Docker engine of this host: an environment is a container.

No network but the gateway, no capabilities, no new privileges, limits on time, memory, processors,
processes, file size and storage; harness and verifier are read-only snapshots. Tasks without an
image run in a base image whose system is read-only, as an ordinary user; tasks with one run in
theirs. Every container, network and folder bears the run's label and its maker's.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from milo.core.dockerfile import Builder
from milo.core.errors import MiloError
from milo.core.ports import EnvironmentSpec
from milo.rollout.docker.container import remove_container
from milo.rollout.docker.engine import EngineError, NotThere
from milo.rollout.docker.environment import DockerEnvironment
from milo.rollout.docker.host import DockerHost
from milo.rollout.docker.labels import NO_RUN, is_abandoned, run_filter
from milo.rollout.docker.networks import Networks
from milo.rollout.docker.remains import remove_as_root
from milo.rollout.scratch import TreeShelf, is_left, reap_folders

OUTAGE_S = 600.0
LOOK_S = 1.0


class DockerSandbox:
    """Implements `ports.Sandbox`. Any number of environments at once on one event loop."""

    def __init__(self, host: DockerHost) -> None:
        self._host = host
        self._shelf = TreeShelf(host.root, shared=True)
        self._networks = Networks(host.engine)

    @property
    def capabilities(self) -> frozenset[str]:
        """What it enforces here, and what it can give a task."""
        facts = self._host.engine.facts
        words = {"isolation", "no-network", "file-size", "storage"}
        words |= {"image-build", "image-pull", "workdir", "users", "allowlisted-network"}
        words |= {Builder.BUILDKIT} | ({Builder.HEREDOCS} if facts.heredocs else set())
        words |= {"memory"} if facts.memory else set()
        words |= {"pids"} if facts.pids else set()
        words |= {"cpus"} if facts.cpu else set()
        words |= {"public-network"} if self._host.networks else set()
        # A phase without the network of another: only root can take a link down inside.
        words |= {"phase-network"} if self._host.networks and self._host.enters else set()
        return frozenset(words)

    @property
    def description(self) -> str:
        """One line."""
        facts = self._host.engine.facts
        kinds = (("memory", facts.memory), ("process", facts.pids), ("processor", facts.cpu))
        lacks = [f"{kind} limits" for kind, there in kinds if not there]
        warning = f" (WEAK: without {', '.join(lacks)})" if lacks else ""
        return f"docker sandbox: engine {facts.version}, base image {self._host.base_name}{warning}"

    async def open(self, spec: EnvironmentSpec) -> DockerEnvironment:
        """A fresh environment; raises `MiloError` where the engine or the host can't make one.

        While the engine is down it is waited for, ten minutes at most: its death would else fail
        attempt after attempt within seconds.
        """
        while True:
            try:
                return await self._opened(spec)
            except NotThere:
                # Its image made room for another one's in the meantime.
                return await self._opened(spec)
            except EngineError:
                if not await self._came_back():
                    raise

    async def _came_back(self) -> bool:
        """Wait for an engine that doesn't answer; whether it was down and answers again."""
        if await self._answers():
            return False
        loop = asyncio.get_running_loop()
        deadline = loop.time() + OUTAGE_S
        while loop.time() < deadline:
            await asyncio.sleep(LOOK_S)
            if await self._answers():
                return True
        return False

    async def _answers(self) -> bool:
        try:
            await self._host.engine.ask(self._host.engine.api.ping)
        except EngineError:
            return False
        return True

    async def _opened(self, spec: EnvironmentSpec) -> DockerEnvironment:
        image = self._host.base
        if spec.setting.image is not None:
            image = await self._host.images.get(spec.setting.image)
        try:
            environment = DockerEnvironment(self._host, self._shelf, self._networks, spec, image)
            try:
                await environment.prepare()
            except BaseException:
                await environment.close()
                raise
        except OSError as error:
            raise MiloError(f"no environment could be made: {error}") from error
        return environment

    async def reap(self, owner: str) -> int:
        """Remove what a dead owner left: containers with their processes, volumes, networks,
        folders; and what processes that died left while they made an image."""
        count = 0
        try:
            count += await self._reap_containers(owner) + await self._reap_containers(NO_RUN)
            count += await self._reap_volumes(owner)
            count += await self._networks.reap(owner) + await self._networks.reap(NO_RUN)
            await self._host.images.tidy()
        finally:  # also where the engine is dead
            count += await asyncio.to_thread(reap_folders, self._host.root, owner)
        for place in self._host.root.glob("milo-*"):
            if is_left(place.name, owner):
                await remove_as_root(self._host.engine, self._host.base.id, place, owner)
        return count

    async def _reap_containers(self, owner: str) -> int:
        engine = self._host.engine
        found = await engine.ask(engine.api.containers, all=True, filters=run_filter(owner))
        count = 0
        for container in found:
            if is_abandoned(container.get("Labels") or {}):
                count += await remove_container(engine, container["Id"])
        return count

    async def _reap_volumes(self, owner: str) -> int:
        """Volumes go with their containers, unless the engine died in between."""
        engine = self._host.engine
        said = await engine.ask(engine.api.volumes, filters=run_filter(owner))
        count = 0
        for volume in said.get("Volumes") or ():
            if is_abandoned(volume.get("Labels") or {}):
                with suppress(EngineError):  # another reaper may be at it
                    await engine.ask(engine.api.remove_volume, volume["Name"])
                    count += 1
        return count
