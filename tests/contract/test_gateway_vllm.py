"""vLLM replicas as processes, proven on a stand-in: start, health, death, routing, the end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
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
from milo.gateway.vllm_server import VllmPlan, vllm_server
from milo.testing.upstream_cases import REQUEST, UpstreamCases

PROGRAM = (sys.executable, str(Path(__file__).parent / "stand_in_vllm.py"))
PLAN = VllmPlan(
    model="openai/gpt-oss-120b",
    served_as="m",
    gpus=2,
    context=8192,
    tool_parser="openai",
    reasoning_parser="openai_gptoss",
    program=PROGRAM,
    start_s=60.0,
)


def servers(folder: Path, count: int = 2, plan: VllmPlan = PLAN) -> tuple[ServerProcess, ...]:
    return tuple(vllm_server(plan, "127.0.0.1", folder / f"{n}.log") for n in range(count))


def over(made: tuple[ServerProcess, ...]) -> ReplicaUpstream:
    return ReplicaUpstream(made, "vllm", wire_model="m", check_s=0.1)


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.02)


def workers(server: ServerProcess) -> list[int]:
    """The workers that a server's log names; each is in a session of its own."""
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
        made = servers(self.folder, 1)
        upstream = over(made)
        yield upstream
        await upstream.close()
        assert not made[0].alive


async def test_both_replicas_answer(tmp_path: Path) -> None:
    upstream = over(servers(tmp_path))
    await upstream.check()
    await until(lambda: all(upstream.ready))
    calls = (upstream.complete(REQUEST, "s", nth) for nth in range(8))
    said = {str(done.body["choices"]) for done in await asyncio.gather(*calls)}
    assert len(said) == 2
    await upstream.close()


async def test_nobody_without_the_key_is_answered(tmp_path: Path) -> None:
    """On a cluster other nodes reach the server, and with them whoever else is there."""
    (server,) = servers(tmp_path, 1)
    await server.start()
    stranger = HttpUpstream(server.base_url, "vllm", wire_model="m", api_key="another")
    assert (await stranger.complete(REQUEST, "s", 0)).status == 401
    assert server.api_key not in " ".join(psutil.Process(server.pid).cmdline())
    await stranger.close()
    await server.stop()


async def test_a_killed_replica_comes_back_while_the_other_answers(tmp_path: Path) -> None:
    made = servers(tmp_path)
    upstream = over(made)
    await upstream.check()
    await until(lambda: all(upstream.ready))
    first = made[0].pid
    (command,) = psutil.Process(first).children()
    os.kill(command.pid, signal.SIGKILL)
    await until(lambda: not upstream.ready[0])
    assert (await upstream.complete(REQUEST, "s", 0)).status == 200
    await until(lambda: all(upstream.ready))
    assert made[0].pid != first
    assert all(gone(pid) for pid in workers(made[0])[:1]), "the dead one's worker is left"
    await upstream.close()


async def test_the_server_and_its_workers_die_with_an_owner_that_is_killed(tmp_path: Path) -> None:
    """A run that is killed with -9 must leave no model on a GPU behind."""
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from test_gateway_vllm import servers\n"
        "async def main():\n"
        "    (server,) = servers(Path(sys.argv[1]), 1)\n"
        "    await server.start()\n"
        "    print(server.pid, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, str(tmp_path)), stdout=-1, cwd=Path(__file__).parent
    )
    assert owner.stdout is not None
    keeper = int(await owner.stdout.readline())
    family = [keeper, *(p.pid for p in psutil.Process(keeper).children(recursive=True))]
    assert len(family) == 3, "the keeper, the server and its worker"
    owner.kill()
    await owner.wait()
    await until(lambda: all(gone(pid) for pid in family))


async def test_a_killed_keeper_takes_the_server_along(tmp_path: Path) -> None:
    (server,) = servers(tmp_path, 1)
    await server.start()
    assert server.pid is not None
    (command,) = psutil.Process(server.pid).children()
    os.kill(server.pid, signal.SIGKILL)
    await until(lambda: gone(command.pid))
    await server.stop()
    for pid in workers(server):  # in a session of its own, and nobody is left who knew it
        os.kill(pid, signal.SIGKILL)


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
        (replace(PLAN, program=("no-such-vllm", "serve")), "no-such-vllm can't be started"),
    ],
)
async def test_a_server_that_does_not_come_up_says_why(
    tmp_path: Path, plan: VllmPlan, words: str
) -> None:
    (server,) = servers(tmp_path, 1, plan)
    with pytest.raises(ModelError, match=re.escape(words)):
        await server.start()
    assert not server.alive
    await until(lambda: all(gone(pid) for pid in workers(server)))
