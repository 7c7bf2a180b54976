"""Model servers as a plan names them: what they take of the cluster, and how one is made."""

from __future__ import annotations

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


def server_of(model: ModelPlan, host: str, log: Path) -> ModelServer:
    """One replica, not started yet."""
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
    return vllm_server(plan, host, log)


def served_name(model: ModelPlan) -> str:
    """Under which a server is asked for its model."""
    return model.name.rstrip("/").rpartition("/")[2]
