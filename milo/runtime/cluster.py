"""The Ray cluster: started quietly on this machine, or joined."""

from __future__ import annotations

import socket
from typing import Any

import ray

from milo.core.errors import ClusterError
from milo.core.plan import ClusterPlan
from milo.runtime.placement import Node

REACH_S = 5.0
ANSWER_S = 20.0
EMPTY_SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The frame of HTTP/2 that each side begins with; Ray's head speaks gRPC."""
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + EMPTY_SETTINGS
KIND = slice(3, 4)
TLS_ALERT = b"\x15"
"""How a head begins that wants to be spoken to by TLS; or it says nothing and closes."""
OBJECT_STORE_BYTES = 128 * 1024 * 1024
SYSTEM = {
    # Attempts are timed: they must not yield to whatever else the machine does.
    "worker_niceness": 0,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 5,
    "health_check_timeout_ms": 3000,
}


def connect(plan: ClusterPlan) -> bool:
    """Join or start Ray; True where this process started it and must stop it.

    A Ray that this process is already connected to is used as it is. Raises `ClusterError`.
    """
    if ray.is_initialized():
        return False
    settings: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": "error",
        "configure_logging": True,
    }
    if plan.address:
        check_reachable(plan.address)
        settings["address"] = plan.address
    else:
        settings |= {
            "address": "local",
            "include_dashboard": False,
            "num_cpus": max(4, plan.slots),
            "resources": {plan.resource: plan.slots} if plan.resource else None,
            "object_store_memory": OBJECT_STORE_BYTES,
            "_system_config": SYSTEM,
        }
    try:
        ray.init(**settings)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = plan.address or "this machine"
        raise ClusterError(f"cluster.address: no Ray cluster at {where}: {error}") from error
    return not plan.address


def check_reachable(address: str) -> None:
    """Refuse an address where no Ray listens at once: Ray itself would wait for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return  # "auto" and the like, which Ray resolves
    try:
        with socket.create_connection((host.strip("[]"), int(port)), REACH_S) as head:
            said = _answer(head)
    except OSError as error:
        raise ClusterError(f"cluster.address: no Ray cluster at {address}: {error}") from error
    if said and said[KIND] != EMPTY_SETTINGS[KIND] and not said.startswith(TLS_ALERT):
        raise ClusterError(f"cluster.address: no Ray cluster at {address}: something else answers")


def _answer(head: socket.socket) -> bytes:
    """How somebody answers gRPC's first words; b"" where the line is closed on them."""
    head.settimeout(ANSWER_S)
    try:
        head.sendall(HELLO)
        return head.recv(len(EMPTY_SETTINGS))
    except ConnectionError:
        return b""


def living_nodes() -> tuple[Node, ...]:
    """Nodes that Ray believes alive, in a stable order."""
    nodes = [
        Node(
            node_id=entry["NodeID"],
            address=entry["NodeManagerAddress"],
            resources=dict(entry["Resources"]),
        )
        for entry in ray.nodes()
        if entry["Alive"]
    ]
    return tuple(sorted(nodes, key=lambda node: node.node_id))
