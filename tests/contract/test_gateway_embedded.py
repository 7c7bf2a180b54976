"""The real embedded model, where its weights are cached: a child that dies with us."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from platformdirs import user_cache_path

from milo.core.errors import ModelError
from milo.gateway.llama_server import ServerSettings, embedded_server
from milo.gateway.prices import FREE
from milo.gateway.replica_upstream import ReplicaUpstream
from milo.gateway.server_process import ServerProcess
from milo.gateway.weights import built_in, cached

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]
SETTINGS = ServerSettings(context=512, parallel=2, threads=1)
PROMPT = "You name colours. " * 20


def ask(text: str, **more: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], **more}


@pytest.fixture
def weights() -> Path:
    known = built_in("local-small")
    found = cached(known, user_cache_path("milo") / "weights")
    if found is None:
        pytest.skip(f"{known.title} is not in the cache (milo run model=local-small fetches it)")
    return found


@pytest.fixture
def server(weights: Path, tmp_path: Path) -> ServerProcess:
    return embedded_server(weights, SETTINGS, tmp_path / "log")


@pytest.fixture
async def upstream(server: ServerProcess) -> AsyncIterator[ReplicaUpstream]:
    made = ReplicaUpstream((server,), "small", wire_model="local", price=FREE)
    yield made
    await made.close()


async def test_greedy_answers_repeat_and_their_prompt_is_cached(
    upstream: ReplicaUpstream, server: ServerProcess
) -> None:
    asked = ask(PROMPT, temperature=0, max_tokens=12)
    first, second = [await upstream.complete(asked, "s", n) for n in range(2)]
    assert str(first.body["choices"]) == str(second.body["choices"])
    assert second.usage.cached_input > second.usage.uncached_input
    assert first.usage.dollars == second.usage.dollars == 0.0
    assert server.launch.log_path.stat().st_size > 0


async def test_a_stream_comes_in_pieces_and_costs_what_the_whole_answer_does(
    upstream: ReplicaUpstream,
) -> None:
    asked = ask(PROMPT, temperature=0, max_tokens=12)
    whole = await upstream.complete(asked, "s", 0)
    pieces: list[object] = []

    async def emit(chunk: object) -> None:
        pieces.append(chunk)

    streamed = await upstream.stream(asked, "s", 1, emit)
    assert len(pieces) > 3
    assert streamed.usage.output == whole.usage.output and not streamed.usage.estimated
    assert streamed.usage.tokens == whole.usage.tokens


async def test_a_prompt_longer_than_the_context_is_the_caller_s_mistake(
    upstream: ReplicaUpstream,
) -> None:
    done = await upstream.complete(ask("word " * 2000, max_tokens=4), "s", 0)
    assert done.status == 400


async def test_a_killed_server_is_started_again(
    upstream: ReplicaUpstream, server: ServerProcess
) -> None:
    await upstream.check()
    (command,) = psutil.Process(server.pid).children()
    os.kill(command.pid, signal.SIGKILL)
    async with asyncio.timeout(10):
        while server.alive:
            await asyncio.sleep(0.01)
    assert (await upstream.complete(ask("hi", max_tokens=2), "s", 0)).status == 200


async def test_the_server_dies_with_its_parent(weights: Path, tmp_path: Path) -> None:
    """A run that is killed with -9 must leave no half gigabyte behind."""
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from milo.gateway.llama_server import ServerSettings, embedded_server\n"
        "import psutil\n"
        "async def main():\n"
        "    s = embedded_server(Path(sys.argv[1]), ServerSettings(context=512, parallel=1,\n"
        "        threads=1), Path(sys.argv[2]))\n"
        "    await s.start()\n"
        "    print(psutil.Process(s.pid).children()[0].pid, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(weights), str(tmp_path / "log"), stdout=-1
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    assert psutil.pid_exists(child)
    parent.kill()
    await parent.wait()
    async with asyncio.timeout(10):
        while psutil.pid_exists(child) and psutil.Process(child).status() != "zombie":
            await asyncio.sleep(0.02)


async def test_a_file_that_is_no_model_is_refused_with_the_log(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"not a model")
    server = embedded_server(tmp_path / "bad.gguf", SETTINGS, tmp_path / "log")
    with pytest.raises(ModelError, match=r"bad\.gguf died at its start"):
        await server.start()
    assert not server.alive
    await server.stop()


async def test_missing_weights_are_said(tmp_path: Path) -> None:
    server = embedded_server(tmp_path / "none.gguf", SETTINGS, tmp_path / "log")
    with pytest.raises(ModelError, match="expected a GGUF file, found none"):
        await server.start()
    assert not server.alive
