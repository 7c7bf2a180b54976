"""vLLM as Ray places it: a run on two replicas of a stand-in, and plans that have no room."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray

from milo.app.compose import AppParts
from milo.core.errors import ConfigError, ModelError
from milo.core.plan import ModelPlan, RunPlan, ServerPlan
from milo.core.servers import ServerDemand
from milo.gateway.replica_upstream import ReplicaUpstream
from milo.runtime.cluster import living_nodes
from milo.runtime.model_servers import ModelServers, RemoteServer, check_room
from milo.runtime.placement import Node
from milo.testing.upstream_cases import REQUEST

pytestmark = [
    pytest.mark.timeout(600),
    # Ray's own, in this process: they are not ours to mend.
    pytest.mark.filterwarnings("ignore"),
]
STAND_IN = Path(__file__).parents[1] / "contract" / "stand_in_vllm.py"


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A node that says it has four GPUs."""
    ray.init(
        address="local",
        num_cpus=4,
        num_gpus=4,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        object_store_memory=100 * 2**20,
    )
    yield
    ray.shutdown()
    gc.collect()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The stand-in as one executable, as `vllm` is."""
    path = tmp_path / "vllm"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def parts(folder: Path, program: Path, **server: Any) -> AppParts:
    served = ServerPlan(
        kind="vllm", program=str(program), cpus=0.5, start_minutes=1.0, **{"gpus": 2, **server}
    )
    plan = RunPlan(run=str(folder), model=ModelPlan(name="openai/gpt-oss-120b", server=served))
    return AppParts(plan=plan, path=folder)


def servers_of(made: AppParts) -> ModelServers:
    demand = made.server_demand()
    assert demand is not None
    return ModelServers(made, demand)


def stand_ins() -> list[psutil.Process]:
    """The stand-ins of this test's program, without their keepers and shells."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if words[1:2] == [str(STAND_IN)]:
            found.append(process)
    return found


async def until(holds: Callable[[], Any], seconds: float = 180.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.05)


@pytest.fixture
async def replicas(
    cluster: None, program: Path, tmp_path: Path
) -> AsyncIterator[tuple[RemoteServer, ...]]:
    servers = servers_of(parts(tmp_path / "run", program, replicas=2))
    yield await servers.open(living_nodes())
    await servers.close()
    await until(lambda: not stand_ins())


def over(replicas: tuple[RemoteServer, ...]) -> ReplicaUpstream:
    return ReplicaUpstream(replicas, "vllm", wire_model="gpt-oss-120b", check_s=0.1)


async def said_by(upstream: ReplicaUpstream, calls: int) -> set[str]:
    done = await asyncio.gather(*(upstream.complete(REQUEST, "s", n) for n in range(calls)))
    return {str(one.body["choices"][0]["message"]["content"]) for one in done}  # type: ignore[index]


async def test_replicas_stand_on_gpus_of_their_own_and_share_the_calls(
    replicas: tuple[RemoteServer, ...],
) -> None:
    upstream = over(replicas)
    await upstream.check()
    await until(lambda: all(upstream.ready))
    said = await said_by(upstream, 8)
    gpus = sorted(words.rpartition("GPU ")[2] for words in said)
    assert gpus == ["0,1", "2,3"]
    assert all(server.api_key for server in replicas)
    await upstream.close()


async def test_a_killed_server_comes_back_for_every_gateway(
    replicas: tuple[RemoteServer, ...],
) -> None:
    here, there = over(replicas), over(tuple(_copy(server) for server in replicas))
    for upstream in (here, there):
        await upstream.check()
        await until(lambda at=upstream: all(at.ready))
    victim = stand_ins()[0]
    victim.kill()
    await until(lambda: not all(here.ready))
    assert len(await said_by(here, 4)) == 1, "the other one answers meanwhile"
    for upstream in (here, there):
        await until(lambda at=upstream: all(at.ready))
        assert len(await said_by(upstream, 8)) == 2
    assert len(stand_ins()) == 2
    for upstream in (here, there):
        await upstream.close()


async def test_a_killed_replica_takes_its_server_along_and_comes_back(
    replicas: tuple[RemoteServer, ...],
) -> None:
    """The actor is what a dead node or a full memory takes; its GPU must be free again."""
    upstream = over(replicas)
    await upstream.check()
    await until(lambda: all(upstream.ready))
    before = {process.pid for process in stand_ins()}
    owner = next(p for p in psutil.process_iter(["cmdline"]) if _runs_replica(p))
    os.kill(owner.pid, signal.SIGKILL)
    await until(lambda: not all(upstream.ready))
    await until(lambda: len(before & {process.pid for process in stand_ins()}) == 1)
    await until(lambda: all(upstream.ready))
    assert len(await said_by(upstream, 8)) == 2
    await upstream.close()


def _runs_replica(process: psutil.Process) -> bool:
    return "ray::Replica" in " ".join(process.info["cmdline"] or [])


def _copy(server: RemoteServer) -> RemoteServer:
    """As it arrives in another process."""
    return RemoteServer(server._name, server._actor)


async def test_a_server_that_can_t_come_up_ends_the_plan_with_its_words(
    cluster: None, program: Path, tmp_path: Path
) -> None:
    made = parts(tmp_path / "run", program, args=("--stand-in-fault", "start"))
    servers = servers_of(made)
    with pytest.raises(ModelError, match="CUDA out of memory"):
        await servers.open(living_nodes())
    await servers.close()
    assert not stand_ins()


async def test_a_plan_without_room_is_refused_at_once(
    cluster: None, program: Path, tmp_path: Path
) -> None:
    made = parts(tmp_path / "run", program, replicas=3)
    began = time.monotonic()
    with pytest.raises(
        ConfigError, match=r"room for 3 with 0\.5 CPU, 2 GPU each, found room for 2"
    ):
        await servers_of(made).open(living_nodes())
    assert time.monotonic() - began < 5 and not stand_ins()


def test_room_is_counted_node_by_node() -> None:
    """Three GPUs here and one there are no place for two replicas of two."""
    demand = ServerDemand(name="replicas", replicas=2, resources={"GPU": 2.0})
    nodes = [
        Node(node_id="a" * 8, address="", resources={"GPU": 3.0}),
        Node(node_id="b" * 8, address="", resources={"GPU": 1.0}),
    ]
    with pytest.raises(ConfigError, match="found room for 1"):
        check_room(demand, nodes)
    check_room(demand, [nodes[0], *[Node(node_id="c", address="", resources={"GPU": 2.0})]])
