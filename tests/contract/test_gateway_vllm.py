"""vLLM replicas as processes, proven on a stand-in: start, health, death, routing, the end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from milo.core.errors import ModelError
from milo.core.ports import Upstream
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.replica_upstream import ReplicaUpstream
from milo.gateway.server_process import ServerProcess
from milo.gateway.vllm_server import VllmPlan, replicas
from milo.testing.upstream_cases import REQUEST, UpstreamCases

PROGRAM = (sys.executable, str(Path(__file__).parent / "stand_in_vllm.py"))
PLAN = VllmPlan(
    model="openai/gpt-oss-120b",
    served_as="m",
    gpus=2,
    replicas=2,
    context=8192,
    tool_parser="openai",
    reasoning_parser="openai_gptoss",
    program=PROGRAM,
    start_s=60.0,
)


def ports(count: int) -> list[int]:
    """Loopback ports that were free a moment ago."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [sock.getsockname()[1] for sock in held]
    for sock in held:
        sock.close()
    return found


def servers(folder: Path, plan: VllmPlan = PLAN) -> tuple[ServerProcess, ...]:
    return replicas(plan, range(plan.gpus * plan.replicas), ports(plan.replicas), folder)


def over(made: tuple[ServerProcess, ...]) -> ReplicaUpstream:
    def connect(base_url: str) -> HttpUpstream:
        return HttpUpstream(base_url, "vllm", wire_model="m")

    return ReplicaUpstream(made, "vllm", connect, check_s=0.1)


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.02)


def workers(server: ServerProcess) -> list[int]:
    """The workers that a server's log names."""
    text = server.launch.log_path.read_text() if server.launch.log_path.exists() else ""
    return [int(found) for found in re.findall(r"worker (\d+)", text)]


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class TestReplicas(UpstreamCases):
    @pytest.fixture(autouse=True)
    def logs(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Upstream]:
        made = servers(self.folder, replace(PLAN, replicas=1))
        upstream = over(made)
        yield upstream
        await upstream.close()
        assert not made[0].alive


async def test_both_replicas_answer_each_on_gpus_of_its_own(tmp_path: Path) -> None:
    upstream = over(servers(tmp_path))
    await upstream.check()
    await until(lambda: all(upstream.ready))
    calls = (upstream.complete(REQUEST, "s", nth) for nth in range(8))
    said = {str(done.body["choices"]) for done in await asyncio.gather(*calls)}
    assert sum("GPU 0,1" in text for text in said) == sum("GPU 2,3" in text for text in said) == 1
    await upstream.close()


async def test_a_killed_replica_comes_back_while_the_other_answers(tmp_path: Path) -> None:
    made = servers(tmp_path)
    upstream = over(made)
    await upstream.check()
    await until(lambda: all(upstream.ready))
    first = made[0].pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: not upstream.ready[0])
    assert (await upstream.complete(REQUEST, "s", 0)).status == 200
    await until(lambda: all(upstream.ready))
    assert made[0].pid != first
    assert all(gone(pid) for pid in workers(made[0])[:1]), "the dead one's worker is left"
    await upstream.close()


async def test_the_end_leaves_no_process(tmp_path: Path) -> None:
    made = servers(tmp_path)
    upstream = over(made)
    await upstream.check()
    await until(lambda: all(upstream.ready))
    family = [pid for server in made for pid in workers(server)]
    assert len(family) == 2 and not any(gone(pid) for pid in family)
    await upstream.close()
    await until(lambda: all(gone(pid) for pid in family))


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (replace(PLAN, extra=("--stand-in-fault", "start")), "CUDA out of memory"),
        (replace(PLAN, extra=("--no-such-option",)), "--no-such-option"),
        (replace(PLAN, extra=("--stand-in-fault", "hang"), start_s=2.0), "not ready in 2 s"),
        (replace(PLAN, program=("no-such-vllm", "serve")), "can't be started"),
    ],
)
async def test_a_server_that_does_not_come_up_says_why(
    tmp_path: Path, plan: VllmPlan, words: str
) -> None:
    server = servers(tmp_path, plan)[0]
    with pytest.raises(ModelError, match=re.escape(words)):
        await server.start()
    assert not server.alive
    await until(lambda: all(gone(pid) for pid in workers(server)))
