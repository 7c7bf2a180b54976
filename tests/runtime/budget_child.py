"""Workers that hammer one budget until nothing is left, as a process that can be killed.

``python budget_child.py RUN BASE_URL WORKERS DOLLARS DOLLARS_PER_TOKEN`` owns the run directory
with its ledger, serves a gateway, and has so many workers call it over the socket, each with a
session of its own, until each is refused. It prints how many answers they got.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import numpy as np

from milo.core.budget import Budget
from milo.core.calls import Purse
from milo.core.ports import Caps
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.line import Line
from milo.gateway.pins import Pins
from milo.gateway.prices import Price
from milo.gateway.proxy import Gateway
from milo.runtime.treasury import Treasury
from milo.store import RunStore

REQUEST = {"messages": [{"role": "user", "content": "word " * 40}], "max_tokens": 60}


class SystemClock:
    """The machine's time."""

    def now(self) -> float:
        return time.time()


def line_to(base_url: str, purse: Purse, per_token: float) -> Line:
    price = Price(
        uncached_input=per_token * 1e6,
        cached_input=per_token * 1e6,
        cache_write=per_token * 1e6,
        output=per_token * 1e6,
    )
    upstream = HttpUpstream(base_url, "m", wire_model="m", price=price)
    rng = np.random.default_rng(0)
    return Line(upstream=upstream, pins=Pins(model="m"), rng=rng, price=price, purse=purse)


async def worker(gateway: Gateway, number: int) -> int:
    """Call until the answer is no answer; how many there were."""
    answers = 0
    connector = aiohttp.UnixConnector(str(gateway.socket))
    async with aiohttp.ClientSession(connector=connector) as client:
        while True:
            session = await gateway.open_session(f"attempt {number}.{answers}", Caps(), 600)
            headers = {"Authorization": f"Bearer {session.token}"}
            url = "http://gateway/v1/chat/completions"
            async with client.post(url, json=REQUEST, headers=headers) as reply:
                status, text = reply.status, await reply.text()
            report = await session.close()
            if status == 429:
                assert report.fault.startswith("budget: "), report.fault
                return answers
            assert status == 200, text
            answers += 1


async def main(run: Path, base_url: str, workers: int, dollars: float, per_token: float) -> None:
    with RunStore.open(run, clock=SystemClock()) as records, tempfile.TemporaryDirectory() as at:
        purse = Treasury(Budget(dollars=dollars), records, records.population())
        line = line_to(base_url, purse, per_token)
        gateway = Gateway(line, Path(at) / "s")
        await gateway.start()
        print("started", flush=True)
        got = await asyncio.gather(*(worker(gateway, number) for number in range(workers)))
        await gateway.stop()
        await line.upstream.close()
        print(sum(got), flush=True)


if __name__ == "__main__":
    asyncio.run(
        main(
            Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])
        )
    )
