"""A line over a scripted model whose waits take no time, and a gateway on a unix socket."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from gateway_scene import Caller, FakeTime, MakeLine

from milo.core.ports import Upstream
from milo.gateway.line import Line, Policy
from milo.gateway.pins import Pins
from milo.gateway.proxy import Gateway


@pytest.fixture
def fake_time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def make_line(fake_time: FakeTime) -> MakeLine:
    def make(upstream: Upstream, pins: Pins | None = None, **changes: Any) -> Line:
        given: dict[str, Any] = {
            "rng": np.random.default_rng(1),
            "policy": Policy(tries=3),
            "sleep": fake_time.sleep,
            "now": fake_time.read,
        }
        return Line(upstream=upstream, pins=pins or Pins(model="frozen"), **{**given, **changes})

    return make


@pytest.fixture
def socket_dir() -> Iterator[Path]:
    """A short path: a unix socket's may have 100 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="gw-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
async def serve(socket_dir: Path) -> AsyncIterator[Callable[..., Any]]:
    """Start a gateway over a line, and get its caller."""
    opened: list[Caller] = []

    async def start(line: Line, **options: Any) -> Caller:
        gateway = Gateway(line, socket_dir / f"{len(opened)}.sock", **options)
        await gateway.start()
        connector = aiohttp.UnixConnector(str(gateway.socket))
        opened.append(Caller(gateway, aiohttp.ClientSession(connector=connector)))
        return opened[-1]

    yield start
    for caller in opened:
        await caller.client.close()
        await caller.gateway.stop()
