"""What the gateway adds: to 200 streams at once, to single calls, and to memory over many calls.

``scripts/bench gateway [PART ...]`` with the parts ``streams``, ``calls`` and ``memory`` (all by
default); ``memory=N`` makes N calls instead of 100,000. Model, gateway and client are processes of
their own. The bars: streams from a model paced at 20 tokens/s complete at 0.8 x the rate of the
same client straight to it, or better; a call costs less than 5 ms more at the median; memory after
the last call is within a tenth of that after the first tenth of the calls.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import aiohttp
import numpy as np

HERE = Path(__file__).parent
STREAMS, TOKENS, PACE_S, ROUNDS = 200, 100, 0.05, 2
PAIRS, CALLS, AT_ONCE, PER_SESSION, SHORT = 400, 100_000, 16, 12, 10
REQUEST: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "You are careful. " * 60},
        {"role": "user", "content": "Count the lines of log.txt that hold an error. " * 10},
    ],
    "max_tokens": 200,
}
PATIENT = aiohttp.ClientTimeout(total=None, sock_read=120)
STREAMED = {**REQUEST, "stream": True, "stream_options": {"include_usage": True}}


class Child:
    """A child process that answers lines by lines."""

    def __init__(self, *argv: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line: str = "") -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        if line:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


@contextmanager
def child(*argv: str) -> Iterator[Child]:
    running = Child(*argv)
    try:
        yield running
    finally:
        running.close()


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to the model: straight, or through the gateway with a token per stream."""

    client: aiohttp.ClientSession
    url: str
    tokens: Sequence[str]

    def headers(self, nth: int) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[nth % len(self.tokens)]}"}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The model and the gateway before it, running."""

    model: str
    gateway: Child
    socket: Path

    def renew(self, sessions: int) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.gateway.ask(str(sessions)))
        return told

    @asynccontextmanager
    async def ways(self, sessions: int) -> AsyncIterator[tuple[Way, Way]]:
        tokens = self.renew(sessions)["tokens"]
        tcp, unix = aiohttp.TCPConnector(limit=0), aiohttp.UnixConnector(str(self.socket), limit=0)
        async with (
            aiohttp.ClientSession(connector=tcp, timeout=PATIENT) as straight,
            aiohttp.ClientSession(connector=unix, timeout=PATIENT) as through,
        ):
            yield (
                Way(client=straight, url=self.model, tokens=("none",)),
                Way(client=through, url="http://gateway/v1", tokens=tokens),
            )


@contextmanager
def bench(tokens: int, pace_s: float) -> Iterator[Bench]:
    with (
        tempfile.TemporaryDirectory() as folder,
        child(str(HERE / "paced_model.py"), str(tokens), str(pace_s)) as model,
    ):
        base_url, socket = model.ask(), Path(folder) / "s"
        with child(str(HERE / "gateway_child.py"), base_url, str(socket)) as gateway:
            yield Bench(model=base_url, gateway=gateway, socket=socket)


async def one_stream(way: Way, nth: int, tokens: int = TOKENS) -> tuple[float, float]:
    """Seconds to the first token and to the end; the stream must be whole."""
    began, first, events, rest = perf_counter(), 0.0, 0, b""
    async with way.client.post(
        f"{way.url}/chat/completions", json=STREAMED, headers=way.headers(nth)
    ) as reply:
        assert reply.status == 200, await reply.text()
        async for block in reply.content.iter_any():
            first = first or perf_counter() - began
            events += block.count(b"data: ")
            rest = (rest + block)[-20:]
    assert events == tokens + 3 and b"[DONE]" in rest, (events, rest)
    return first, perf_counter() - began


async def many_streams(way: Way) -> tuple[float, list[tuple[float, float]]]:
    began = perf_counter()
    seen = await asyncio.gather(*(one_stream(way, nth) for nth in range(STREAMS)))
    return perf_counter() - began, list(seen)


async def measure_streams() -> bool:
    seconds: dict[str, float] = {"straight": 0.0, "through": 0.0}
    seen: dict[str, list[tuple[float, float]]] = {"straight": [], "through": []}
    with bench(TOKENS, PACE_S) as running:
        async with running.ways(STREAMS) as ways:
            names = dict(zip(seconds, ways, strict=True))
            for round_ in range(ROUNDS):
                for name in sorted(names, reverse=bool(round_ % 2)):
                    took, streams = await many_streams(names[name])
                    seconds[name] += took
                    seen[name] += streams
        metered = running.renew(0)
    made = STREAMS * ROUNDS
    assert metered["calls"] == made and metered["output"] == made * TOKENS, metered
    rates = {name: made * TOKENS / took for name, took in seconds.items()}
    ratio = rates["through"] / rates["straight"]
    print(f"{STREAMS} streams at once, {TOKENS} tokens each, {1 / PACE_S:g} tokens/s a stream:")
    print(
        f"  straight {rates['straight']:.0f} tokens/s, through {rates['through']:.0f}: {ratio:.3f}"
    )
    for what, place in (("time to first token", 0), ("a stream", 1)):
        print(f"  added to {what}: {_added(seen, place)}")
    return ratio >= 0.8


def _added(seen: dict[str, list[tuple[float, float]]], place: int) -> str:
    """Differences of the quantiles of both ways, in milliseconds."""
    told = []
    for quantile in (50, 99):
        straight, through = (
            float(np.percentile([pair[place] for pair in seen[name]], quantile))
            for name in ("straight", "through")
        )
        told.append(f"p{quantile} {1000 * (through - straight):+.1f} ms ({1000 * straight:.0f})")
    return ", ".join(told)


async def one_call(way: Way, nth: int = 0) -> float:
    began = perf_counter()
    async with way.client.post(
        f"{way.url}/chat/completions", json=REQUEST, headers=way.headers(nth)
    ) as reply:
        assert reply.status == 200, await reply.text()
        await reply.read()
    return perf_counter() - began


async def measure_calls() -> bool:
    """Pairs of calls, one each way, in random order."""
    order = random.Random(0)
    took: dict[str, list[float]] = {"straight": [], "through": []}
    with bench(60, 0.0) as running:
        async with running.ways(1) as ways:
            pair = list(zip(took, ways, strict=True))
            for _ in range(PAIRS):
                order.shuffle(pair)
                for name, way in pair:
                    took[name].append(await one_call(way))
    added = np.subtract(took["through"], took["straight"])
    for name, seconds in (*took.items(), ("added", added)):
        p50, p99 = (float(np.percentile(seconds, quantile)) * 1000 for quantile in (50, 99))
        print(f"  a call, {name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms over {PAIRS} pairs")
    return p50 < 5.0


async def measure_memory(calls: int) -> bool:
    """Calls from as many sessions as an attempt's cap makes of them, every fourth one streamed.

    Told as it goes: on cores that others use it takes an hour, and is not to be taken for hung.
    """
    sizes: list[float] = []
    group = AT_ONCE * PER_SESSION
    per_step = max(1, calls // 10 // group)
    with bench(SHORT, 0.0) as running:
        for step in range(10):
            began = perf_counter()
            for _ in range(per_step):
                async with running.ways(AT_ONCE) as (_, through):
                    await asyncio.gather(*(_session_of_calls(through, n) for n in range(AT_ONCE)))
            sizes.append(running.renew(0)["rss"] / 2**20)
            rate = per_step * group / (perf_counter() - began)
            done = (step + 1) * per_step * group
            print(f"  {done} calls: {sizes[-1]:.1f} MiB, {rate:.0f} calls/s", flush=True)
    slope = float(np.polyfit(range(len(sizes) - 1), sizes[1:], 1)[0])
    print(f"memory: last {sizes[-1]:.1f} / first {sizes[0]:.1f} MiB, {slope:+.2f} MiB a step")
    return sizes[-1] <= 1.1 * sizes[0]


async def _session_of_calls(way: Way, nth: int) -> None:
    for turn in range(PER_SESSION):
        await (one_stream(way, nth, SHORT) if turn % 4 == 0 else one_call(way, nth))


async def main(words: Sequence[str]) -> int:
    wanted = dict(word.partition("=")[::2] for word in words) or dict.fromkeys(
        ("streams", "calls", "memory"), ""
    )
    held = []
    if "streams" in wanted:
        held.append(await measure_streams())
    if "calls" in wanted:
        held.append(await measure_calls())
    if "memory" in wanted:
        held.append(await measure_memory(int(wanted["memory"] or CALLS)))
    print("within the bars" if all(held) else "OUTSIDE the bars")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
