"""The plan of a vLLM server, and routing over its replicas."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from gateway_scene import ask

from milo.core.errors import ConfigError, ModelError
from milo.gateway.replica_upstream import RESTARTS, ReplicaUpstream
from milo.gateway.vllm_server import VllmPlan, command, vllm_server
from milo.testing.scripted_model import Answer, ScriptedServer, always, in_turn

PLAN = VllmPlan(model="openai/gpt-oss-120b", served_as="m", gpus=2)


def test_the_command_line_names_what_a_measurement_depends_on() -> None:
    plan = VllmPlan(
        model="openai/gpt-oss-120b",
        served_as="gpt-oss",
        gpus=4,
        context=32768,
        revision="abc",
        tool_parser="openai",
        reasoning_parser="openai_gptoss",
        extra=("--max-num-seqs", "64"),
    )
    argv = command(plan, "10.0.0.7", 8123)
    assert argv[:3] == ("vllm", "serve", "openai/gpt-oss-120b")
    pairs = dict(pairwise(argv))
    assert pairs["--port"] == "8123" and pairs["--host"] == "10.0.0.7"
    assert pairs["--tensor-parallel-size"] == "4" and pairs["--max-model-len"] == "32768"
    assert pairs["--served-model-name"] == "gpt-oss" and pairs["--revision"] == "abc"
    assert pairs["--max-num-seqs"] == "64"
    assert {"--enable-auto-tool-choice", "--enable-prompt-tokens-details"} <= set(argv)


def test_what_is_not_set_is_left_to_vllm() -> None:
    argv = command(PLAN, "127.0.0.1", 1)
    assert not {"--max-model-len", "--revision", "--tool-call-parser"} & set(argv)
    assert "--enable-auto-tool-choice" not in argv


def test_the_key_is_in_no_command_line_and_new_at_each_start() -> None:
    launch = vllm_server(PLAN, "127.0.0.1", Path("log")).launch
    assert launch.key_variable == "VLLM_API_KEY"
    assert not any("key" in word for word in launch.argv(8001))


@pytest.mark.parametrize("wrong", [{"gpus": 0}, {"memory_share": 1.5}])
def test_a_plan_that_means_nothing_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        VllmPlan(model="m", served_as="m", **wrong)  # type: ignore[arg-type]


class FakeServer:
    """A `ModelServer` over a scripted one, that can be killed and can fail to start."""

    def __init__(self, scripted: ScriptedServer, failures: int = 0) -> None:
        self.scripted = scripted
        self.failures = failures
        self.starts = 0
        self.alive = False
        self.well = True

    @property
    def base_url(self) -> str:
        return self.scripted.base_url

    @property
    def api_key(self) -> str:
        return ""

    async def start(self) -> None:
        self.starts += 1
        if self.starts <= self.failures:
            raise ModelError("no room on the GPU")
        if not self.alive:
            await self.scripted.start()
        self.alive = True

    async def healthy(self) -> bool:
        return self.alive and self.well

    async def stop(self) -> None:
        self.alive = False
        await self.scripted.stop()


def upstream_over(*servers: FakeServer, hung_s: float = 60.0) -> ReplicaUpstream:
    return ReplicaUpstream(servers, "m", wire_model="m", check_s=0.01, hung_s=hung_s)


async def until(holds: object) -> None:
    async with asyncio.timeout(5):
        while not holds():  # type: ignore[operator]
            await asyncio.sleep(0.005)


async def test_calls_go_to_the_least_loaded_replica() -> None:
    slow = in_turn([Answer(text="a", latency_s=0.2)])
    servers = [FakeServer(ScriptedServer(slow)) for _ in range(3)]
    upstream = upstream_over(*servers)
    await upstream.check()
    await until(lambda: all(upstream.ready))
    before = [server.scripted.tally.calls for server in servers]
    calls = [asyncio.create_task(upstream.complete(ask(), "s", n)) for n in range(9)]
    await until(lambda: upstream.loads == (3, 3, 3))
    await asyncio.gather(*calls)
    after = [server.scripted.tally.calls for server in servers]
    assert [b - a for a, b in zip(before, after, strict=True)] == [3, 3, 3]
    await upstream.close()


async def test_a_replica_that_dies_is_started_again_and_its_calls_go_elsewhere() -> None:
    servers = [FakeServer(ScriptedServer(always("a"))) for _ in range(2)]
    upstream = upstream_over(*servers)
    await until_both_answer(upstream, servers)
    await servers[0].stop()
    assert (await upstream.complete(ask(), "s", 0)).status == 200
    await until(lambda: servers[0].alive and servers[0].starts == 2)
    await upstream.close()
    assert not any(server.alive for server in servers)


async def until_both_answer(upstream: ReplicaUpstream, servers: list[FakeServer]) -> None:
    await upstream.check()
    await until(lambda: all(upstream.ready))


async def test_a_replica_that_is_up_already_takes_calls_at_once() -> None:
    """Another node's gateway had it started; nobody may wait until it counts as hung."""
    server = FakeServer(ScriptedServer(always("a")))
    await server.start()
    upstream = upstream_over(server, hung_s=3600.0)
    assert (await asyncio.wait_for(upstream.complete(ask(), "s", 0), 5)).status == 200
    await upstream.close()


async def test_a_replica_that_is_not_well_gets_no_calls_until_it_is() -> None:
    servers = [FakeServer(ScriptedServer(always("a"))) for _ in range(2)]
    upstream = upstream_over(*servers)
    await until_both_answer(upstream, servers)
    servers[0].well = False
    await until(lambda: not upstream.ready[0])
    before = servers[0].scripted.tally.calls
    for nth in range(6):
        await upstream.complete(ask(), "s", nth)
    assert servers[0].scripted.tally.calls == before
    servers[0].well = True
    await until(lambda: upstream.ready[0])
    for nth in range(6):
        await upstream.complete(ask(), "s", nth)
    assert servers[0].scripted.tally.calls > before
    await upstream.close()


async def test_a_call_waits_for_a_replica_that_starts_at_the_second_try() -> None:
    upstream = upstream_over(FakeServer(ScriptedServer(always("a")), failures=1))
    assert (await asyncio.wait_for(upstream.complete(ask(), "s", 0), 5)).status == 200
    await upstream.close()


async def test_replicas_that_never_start_are_given_up_with_the_reason() -> None:
    server = FakeServer(ScriptedServer(always("a")), failures=1000)
    upstream = upstream_over(server)
    with pytest.raises(ModelError, match="no room on the GPU"):
        await asyncio.wait_for(upstream.complete(ask(), "s", 0), 5)
    assert server.starts == RESTARTS + 1
    await upstream.close()


async def test_a_server_that_crashes_over_and_over_is_given_up() -> None:
    server = FakeServer(ScriptedServer(always("a")))
    upstream = upstream_over(server)
    with pytest.raises(ModelError, match="can be kept up"):
        for nth in range(10):
            await asyncio.wait_for(upstream.complete(ask(), "s", nth), 5)
            await server.stop()
    assert server.starts == RESTARTS + 1
    await upstream.close()


async def test_a_server_that_hangs_is_started_anew() -> None:
    """Its process lives, and without this every call would wait for it until its deadline."""
    server = FakeServer(ScriptedServer(always("a")))
    upstream = upstream_over(server, hung_s=0.05)
    await upstream.check()
    server.well = False
    await until(lambda: server.starts == 2)
    server.well = True
    assert (await asyncio.wait_for(upstream.complete(ask(), "s", 0), 5)).status == 200
    await upstream.close()


async def test_a_replica_s_stream_is_passed_through() -> None:
    upstream = upstream_over(FakeServer(ScriptedServer(always("a b c"))))
    seen: list[object] = []

    async def emit(chunk: object) -> None:
        seen.append(chunk)

    done = await upstream.stream(ask(), "s", 0, emit)
    assert len(seen) == 5 and done.usage.output == 3
    await upstream.close()
