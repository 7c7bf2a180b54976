"""The gateway keeps nothing of calls whose session was closed."""

from __future__ import annotations

import asyncio
import gc
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import numpy as np
import psutil
import pytest

from milo.core.attempt import Usage
from milo.core.budget import Budget, Spend
from milo.core.population import Population
from milo.core.ports import Caps, Completion, Emit
from milo.gateway.chunks import chunks_of
from milo.gateway.line import Line
from milo.gateway.pins import Pins
from milo.gateway.proxy import Gateway
from milo.runtime.treasury import Treasury
from milo.store import RunStore

pytestmark = pytest.mark.timeout(180)
PER_SESSION, AT_ONCE = 8, 8
PATHS = {
    "chat/completions": {"messages": [{"role": "user", "content": "word " * 200}]},
    "responses": {"input": "word " * 200},
    "messages": {"messages": [{"role": "user", "content": "word " * 200}], "max_tokens": 9},
}


class Forgetful:
    """An `Upstream` that keeps nothing of what it was asked."""

    model = "m"

    async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
        """An answer of a kilobyte."""
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": "x" * 1000},
            "finish_reason": "stop",
        }
        usage = {"prompt_tokens": 200, "completion_tokens": 100, "total_tokens": 300}
        body = {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}
        metered = Usage(uncached_input=200, output=100, calls=1, dollars=0.0)
        return Completion(status=200, body=body, usage=metered, seconds=0.0)

    async def stream(
        self, request: Mapping[str, object], scope: str, nth: int, emit: Emit
    ) -> Completion:
        """The same in pieces."""
        done = await self.complete(request, scope, nth)
        for chunk in chunks_of(done.body):
            await emit(chunk)
        return done

    async def check(self) -> None:
        """It answers."""

    async def close(self) -> None:
        """Nothing is held."""


class Clock:
    """A clock that stands still."""

    def now(self) -> float:
        return 0.0


@asynccontextmanager
async def gateway(folder: Path) -> AsyncIterator[tuple[Gateway, Treasury]]:
    """A gateway paid by a ledger on disk."""
    RunStore.create(folder / "run", "run", {}, clock=Clock()).close()
    with RunStore.open(folder / "run", clock=Clock()) as records:
        purse = Treasury(Budget(), records, Population())
        line = Line(
            upstream=Forgetful(),
            pins=Pins(model="m"),
            rng=np.random.default_rng(0),
            secrets=("canary-secret",),
            purse=purse,
        )
        made = Gateway(line, folder / "s")
        await made.start()
        yield made, purse
        await made.stop()


async def make_calls(
    made: Gateway, purse: Treasury, client: aiohttp.ClientSession, sessions: int
) -> None:
    async def session_of_calls(nth: int) -> None:
        session = await made.open_session(f"attempt {nth}", Caps(calls=PER_SESSION), 60)
        headers = {"Authorization": f"Bearer {session.token}"}
        for turn, (path, body) in enumerate([*PATHS.items()] * PER_SESSION):
            asked = {**body, "stream": turn % 2 == 0}  # what the cap refuses is kept no longer
            url = f"http://gateway/v1/{path}"
            async with client.post(url, json=asked, headers=headers) as reply:
                await reply.read()
        report = await session.close()
        assert report.usage.calls == PER_SESSION
        purse.absorb("target", (session.scope,), Spend.of(report.usage))

    for start in range(0, sessions, AT_ONCE):
        await asyncio.gather(*(session_of_calls(start + n) for n in range(AT_ONCE)))


def objects_and_memory() -> tuple[int, float]:
    gc.collect()
    return len(gc.get_objects()), psutil.Process().memory_info().rss / 2**20


async def test_thousands_of_calls_leave_no_objects_and_no_memory() -> None:
    """A night has a hundred thousand calls; what each leaves is there in the morning."""
    folder = Path(tempfile.mkdtemp(prefix="gw-"))
    try:
        async with gateway(folder) as (made, purse):
            connector = aiohttp.UnixConnector(str(made.socket))
            async with aiohttp.ClientSession(connector=connector) as client:
                await make_calls(made, purse, client, 32)
                objects, megabytes = objects_and_memory()
                await make_calls(made, purse, client, 96)
                after, then = objects_and_memory()
    finally:
        shutil.rmtree(folder)
    assert after - objects < 500, "objects over 2304 requests"
    assert then - megabytes < 12
