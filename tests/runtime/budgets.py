"""One budget, many workers and kills: what `test_budget` samples and `bench_budget` measures."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from milo.core.budget import Spend
from milo.core.calls import CallBook
from milo.store import RunReader, RunStore
from milo.testing.scripted_model import Answer, ScriptedServer, Tally

CHILD = Path(__file__).parent / "budget_child.py"
PROMPT, OUTPUT = 42, 55
ONE_CALL_TOKENS = PROMPT + OUTPUT


class SystemClock:
    """The machine's time."""

    def now(self) -> float:
        return time.time()


@dataclass(frozen=True, kw_only=True)
class Hammering:
    """So many workers on so many dollars, at a price by token."""

    run: Path
    workers: int
    dollars: float
    per_token: float

    @property
    def one_call(self) -> float:
        """What a call costs."""
        return ONE_CALL_TOKENS * self.per_token

    def prepare(self) -> None:
        """The run directory."""
        RunStore.create(self.run, self.run.name, {}, clock=SystemClock()).close()

    async def start(self, server: ScriptedServer) -> asyncio.subprocess.Process:
        """The workers, calling."""
        words = (str(self.workers), str(self.dollars), repr(self.per_token))
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(CHILD), str(self.run), server.base_url, *words, stdout=-1
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"started\n"
        return process


def model(latency_s: float) -> ScriptedServer:
    """A model whose every answer costs the same."""
    answer = Answer(text="x", prompt_tokens=PROMPT, output_tokens=OUTPUT, latency_s=latency_s)
    return ScriptedServer(lambda request, nth: answer)


def ledger(run: Path) -> CallBook:
    """The ledger as it stands on disk."""
    with RunReader(run) as reader:
        book = reader.calls
    assert book is not None
    return book


async def killed_at(
    process: asyncio.subprocess.Process, holds: Callable[[], bool], every_s: float = 0.002
) -> None:
    """Kill with SIGKILL once it holds."""
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(every_s)
    process.kill()
    await process.wait()


def check(hammering: Hammering, tally: Tally, book: CallBook) -> str:
    """The bar, as a sentence; raises `AssertionError` where it is missed."""
    served = (tally.prompt_tokens + tally.output_tokens) // ONE_CALL_TOKENS
    promised = sum((entry.amount for entry in book.unsettled), Spend())
    settled, rest = divmod(book.total.tokens - promised.tokens, ONE_CALL_TOKENS)
    most = hammering.dollars + hammering.workers * hammering.one_call
    assert not book.open and rest == 0
    assert book.total.dollars <= most, book.total
    assert settled * hammering.one_call <= most
    unknown = len(book.unsettled)
    assert settled <= served <= settled + unknown, (settled, served, unknown)
    return (
        f"{hammering.workers} workers on ${hammering.dollars:.2f}: ledger ${book.total.dollars:.6f}"
        f" ({settled} calls settled, {unknown} unsettled at ${promised.dollars:.6f}), the model's "
        f"own count {served}; at most ${most:.6f}"
    )
