"""A budget under 16 workers, killed and resumed: ``scripts/bench budget [KILLS]``.

The bars: workers that hammer $1.00 end at $1.00 and one call each at most; the ledger equals the
scripted model's own count of tokens, but for calls that are listed as unsettled and charged at
what was promised for them. First without a kill, then with so many (5) at random points.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

from budgets import Hammering, check, killed_at, ledger, model

WORKERS, DOLLARS, PER_TOKEN, LATENCY_S = 16, 1.0, 2e-6, 0.005


async def measure(kills: int, draw: random.Random) -> str:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        ours = Hammering(run=run, workers=WORKERS, dollars=DOLLARS, per_token=PER_TOKEN)
        ours.prepare()
        calls = DOLLARS / ours.one_call
        points = sorted(draw.uniform(0.02, 0.95) * calls for _ in range(kills))
        began = perf_counter()
        async with model(LATENCY_S) as server:
            for point in points:
                await killed_at(await ours.start(server), lambda at=point: server.tally.calls >= at)
                await asyncio.sleep(2 * LATENCY_S)
            last = await ours.start(server)
            await last.communicate()
            words = check(ours, server.tally, ledger(run))
            rate = server.tally.calls / (perf_counter() - began)
        return f"{kills} kills: {words}; {rate:.0f} calls/s"


async def main(words: list[str]) -> int:
    draw = random.Random(0)
    print(await measure(0, draw))
    print(await measure(int(words[0]) if words else 5, draw))
    print("within the bars")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
