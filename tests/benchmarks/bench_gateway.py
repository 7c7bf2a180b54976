"""What the gateway adds to a call: paired with direct calls to the same scripted server.

Run it by itself: ``python -m pytest tests/benchmarks/bench_gateway.py -s``. Each pair is one call
straight to the server and one through the gateway's socket, in random order, in one process.
"""

from __future__ import annotations

import random
import statistics
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import aiohttp
import numpy as np
import pytest

from milo.core.ports import Caps
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.line import Line
from milo.gateway.pins import Pins
from milo.gateway.proxy import Gateway
from milo.testing.scripted_model import ScriptedServer, always

PAIRS = 400
BAR_MS = 5.0
REQUEST: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "You are careful. " * 60},
        {"role": "user", "content": "Count the lines of log.txt that hold an error. " * 10},
    ],
    "max_tokens": 200,
}
Post = Callable[[], Awaitable[float]]


@pytest.mark.timeout(120)
async def test_the_gateway_adds_less_than_5_ms_at_the_median() -> None:
    added = await _measure()
    p50, p90 = statistics.median(added), sorted(added)[int(0.9 * len(added))]
    print(f"\ngateway adds p50 {p50:.2f} ms, p90 {p90:.2f} ms over {len(added)} pairs")
    assert p50 < BAR_MS


async def _measure() -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        async with ScriptedServer(always("four words are here " * 30)) as server:
            upstream = HttpUpstream(server.base_url, "m", wire_model="m")
            rng = np.random.default_rng(0)
            line = Line(upstream=upstream, pins=Pins(model="m", temperature=0.0), rng=rng)
            gateway = Gateway(line, Path(folder) / "s")
            await gateway.start()
            session = await gateway.open_session("bench", Caps(), 600)
            headers = {"Authorization": f"Bearer {session.token}"}
            socket = aiohttp.UnixConnector(str(gateway.socket))
            async with (
                aiohttp.ClientSession() as straight,
                aiohttp.ClientSession(connector=socket, headers=headers) as through,
            ):
                direct = _poster(straight, server.base_url)
                routed = _poster(through, "http://gateway/v1")
                added = [await _pair(direct, routed, random.Random(n)) for n in range(PAIRS)]
            await session.close()
            await gateway.stop()
            await upstream.close()
    return added


async def _pair(direct: Post, routed: Post, order: random.Random) -> float:
    """Milliseconds that the routed call took longer than the direct one."""
    if order.random() < 0.5:
        before = await direct()
        return 1000 * (await routed() - before)
    after = await routed()
    return 1000 * (after - await direct())


def _poster(client: aiohttp.ClientSession, base_url: str) -> Post:
    async def post() -> float:
        began = perf_counter()
        async with client.post(f"{base_url}/chat/completions", json=REQUEST) as reply:
            assert reply.status == 200
            await reply.read()
        return perf_counter() - began

    return post
