"""The sandbox that a plan asks for: a local one, or containers on this host's engine."""

from __future__ import annotations

import os

from milo.core.plan import ClusterPlan
from milo.core.ports import Sandbox
from milo.rollout.local import choose

DOCKER = "docker"


def choose_sandbox(cluster: ClusterPlan) -> Sandbox:
    """Made for this process; the engine's address is what ``DOCKER_HOST`` says.

    Raises `ConfigError` where it can't work here.
    """
    if cluster.sandbox != DOCKER:
        return choose(cluster.sandbox)
    from milo.rollout.docker.choose import choose_docker

    return choose_docker(
        cluster.image,
        address=os.environ.get("DOCKER_HOST", ""),
        quota_mb=int(cluster.images_gb * 1024),
    )
