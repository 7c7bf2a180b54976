"""Model servers as a plan names them: what they take of the cluster, and how one is made."""

from __future__ import annotations

import shutil
from pathlib import Path

from milo.core.plan import ModelPlan
from milo.core.servers import ModelServer, ServerDemand
from milo.gateway.vllm_server import VllmPlan, vllm_server

A_BIT = 0.001
"""Of a resource by which Ray marks a type of GPU: a node has one of it, however many GPUs."""


def demand_of(model: ModelPlan) -> ServerDemand | None:
    """What the replicas take; None where the run starts no server of its own on the cluster."""
    server = model.server
    if not server.kind:
        return None
    resources = {"CPU": server.cpus, "GPU": float(server.gpus)}
    if server.gpu_type:
        resources[f"accelerator_type:{server.gpu_type}"] = A_BIT
    return ServerDemand(name="model.server.replicas", replicas=server.replicas, resources=resources)


class HousedServer:
    """Implements `ModelServer` around another, whose folder for its log goes with it."""

    def __init__(self, server: ModelServer, folder: Path) -> None:
        self._server = server
        self._folder = folder

    @property
    def base_url(self) -> str:
        """The OpenAI-compatible root."""
        return self._server.base_url

    @property
    def api_key(self) -> str:
        """What it demands of its callers."""
        return self._server.api_key

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._server.alive

    async def start(self) -> None:
        """Start it; raises `ModelError` with the end of its log."""
        await self._server.start()

    async def healthy(self) -> bool:
        """Whether it is well."""
        return await self._server.healthy()

    async def stop(self) -> None:
        """End it, and remove its folder; safe to call twice."""
        await self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def server_of(model: ModelPlan, host: str, log: Path) -> ModelServer:
    """One replica, not started yet; the folder of its log is its own."""
    server = model.server
    plan = VllmPlan(
        model=model.name,
        served_as=served_name(model),
        gpus=server.gpus,
        context=server.context,
        memory_share=server.memory_share,
        revision=server.revision,
        tool_parser=server.tool_parser,
        reasoning_parser=server.reasoning_parser,
        extra=server.args,
        program=(server.program, "serve"),
        start_s=server.start_minutes * 60,
    )
    return HousedServer(vllm_server(plan, host, log), log.parent)


def served_name(model: ModelPlan) -> str:
    """Under which a server is asked for its model."""
    return model.name.rstrip("/").rpartition("/")[2]
