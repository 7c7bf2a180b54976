"""Ray clusters of several nodes on this machine, and the memory of their workers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import ray
from ray.cluster_utils import Cluster

from milo.runtime.cluster import SYSTEM

STORE_BYTES = 80 * 1024 * 1024


@contextmanager
def many_nodes(*nodes: Mapping[str, float]) -> Iterator[Cluster]:
    """A head without slots and a node per mapping of custom resources; this process joins it."""
    # Raylets give their workers this process's environment; paths added here would not reach them.
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 1,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
            "_system_config": SYSTEM,
        },
    )
    try:
        for resources in nodes:
            add(cluster, resources)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def add(cluster: Cluster, resources: Mapping[str, float]) -> Any:
    """One more node; waits until it is there."""
    return cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES, resources=dict(resources))


class Memory(NamedTuple):
    """MiB over all Ray workers: proportional share (shared pages counted once), and resident."""

    workers: int
    pss_mb: float
    rss_mb: float


def workers_memory() -> Memory:
    """The workers below this process; not the raylets and their agents."""
    family = psutil.Process(os.getpid()).children(recursive=True)
    pss, rss = [], []
    for process in family:
        try:
            name = "".join(process.cmdline()[:1])
            if name.startswith("ray::") and not name.endswith("Agent"):
                full = process.memory_full_info()
                pss.append(full.pss)
                rss.append(full.rss)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return Memory(len(pss), sum(pss) / 2**20, sum(rss) / 2**20)
