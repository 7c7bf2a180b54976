"""A gateway in a process of its own, as a node has one.

``python gateway_child.py BASE_URL SOCKET`` serves; each line on its standard input is a number of
sessions to open (the earlier ones are closed), and is answered by one line of JSON: their tokens,
the resident memory in bytes, and how many calls the closed sessions metered.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from pathlib import Path

import numpy as np
import psutil

from milo.core.ports import Caps
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.line import Line
from milo.gateway.pins import Pins
from milo.gateway.prices import FREE
from milo.gateway.proxy import Gateway
from milo.gateway.session import Session


async def main(base_url: str, socket: Path) -> None:
    upstream = HttpUpstream(
        base_url, "m", wire_model="m", api_key="canary-bench-key", price=FREE, connections=512
    )
    rng = np.random.default_rng(0)
    line = Line(upstream=upstream, pins=Pins(model="m"), rng=rng, secrets=("canary-bench-key",))
    gateway = Gateway(line, socket)
    await gateway.start()
    sessions: list[Session] = []
    while asked := await asyncio.to_thread(sys.stdin.readline):
        reports = [await session.close() for session in sessions]
        sessions = [await gateway.open_session("bench", Caps(), 3600) for _ in range(int(asked))]
        told = {
            "tokens": [session.token for session in sessions],
            "calls": sum(report.usage.calls for report in reports),
            "output": sum(report.usage.output for report in reports),
        }
        del reports
        gc.collect()
        print(json.dumps({**told, "rss": psutil.Process().memory_info().rss}), flush=True)
    await gateway.stop()
    await upstream.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
