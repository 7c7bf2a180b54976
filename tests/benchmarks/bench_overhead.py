"""Cost of an attempt through everything: Ray, dispatcher, sandbox, gateway, verifier, records.

Run apart from the tests: ``scripts/bench overhead [attempts] [parallel]``. The bar: with a no-op
harness and verifier, attempts through the whole path cost at most 3 x a bare loop that starts the
same sandboxed process as often with the same parallelism. The two alternate in blocks, so that
other load on the machine falls on both.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from bench_rollout import BLOCKS, bare, noop_harness

from milo.app.compose import AppParts, SystemClock
from milo.core.budget import Budget
from milo.core.harness import Harness
from milo.core.plan import ClusterPlan, ModelPlan, RunPlan, SuitePlan
from milo.core.ports import Sandbox
from milo.rollout.local import choose
from milo.runtime.parts import EvaluationRequest
from milo.runtime.ray_stage import RayStage
from milo.store import RunStore, encode_plan
from milo.testing.scripted_model import ScriptedServer, always

TEST = "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n"


def write_suite(folder: Path) -> None:
    """Two no-op tasks: one to search on, one to validate on."""
    for name in ("a", "b"):
        (folder / name / "tests").mkdir(parents=True)
        (folder / name / "environment").mkdir()
        (folder / name / "task.toml").write_text("[agent]\ntimeout_sec = 60.0\n")
        (folder / name / "instruction.md").write_text("Do nothing.\n")
        (folder / name / "environment" / "Dockerfile").write_text("FROM debian:12\n")
        (folder / name / "tests" / "test.sh").write_text(TEST)


def plan_of(folder: Path, base_url: str, parallel: int) -> RunPlan:
    """A plan with one searched task, whose attempts are counted up."""
    return RunPlan(
        run=str(folder / "run"),
        suite=SuitePlan(
            name="noop", path=str(folder / "suite"), search=1, validation=1, test=0, k=1
        ),
        model=ModelPlan(name="openai/none", base_url=base_url),
        budget=Budget(attempts=10**9),
        cluster=ClusterPlan(slots=parallel),
    )


async def whole(stage: RayStage, harness: Harness, task: str, first: int, count: int) -> float:
    """Run `count` attempts that were never run before; seconds."""
    request = EvaluationRequest(
        island="bench",
        candidate="noop",
        harness=harness,
        split="search",
        tasks=(task,),
        k=count,
        replicate=first,
    )
    begun = time.perf_counter()
    result = await stage.peers.dispatcher.evaluate(request)
    assert not result.missing
    assert result.scores[task].n == count
    return time.perf_counter() - begun


async def measure(parts: AppParts, sandbox: Sandbox, count: int, parallel: int) -> float:
    """Alternate between the two, print, and return the ratio."""
    harness, stage = noop_harness("python"), RayStage(parts)
    await stage.open()
    task = parts.suite().splits.search[0]
    block = max(1, count // BLOCKS)
    try:
        await whole(stage, harness, task, BLOCKS, parallel)
        bare_s = whole_s = 0.0
        for number in range(BLOCKS):
            bare_s += await bare(sandbox, harness, block, parallel)
            whole_s += await whole(stage, harness, task, number, block)
    finally:
        await stage.close()
    done = block * BLOCKS
    print(f"{sandbox.description}; {done} attempts, {parallel} at once")
    print(f"bare loop {bare_s / done * 1e3:.1f} ms, whole path {whole_s / done * 1e3:.1f} ms")
    print(f"ratio {whole_s / bare_s:.2f} (bar 3.00)")
    return whole_s / bare_s


async def main(count: int, parallel: int) -> float:
    """Set up a run with a scripted model and measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder / "suite")
        async with ScriptedServer(always("nothing")) as server:
            plan = plan_of(folder, server.base_url, parallel)
            RunStore.create(folder / "run", "run", encode_plan(plan), clock=SystemClock()).close()
            parts = AppParts(plan=plan, path=folder / "run")
            return await measure(parts, choose("auto"), count, parallel)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    asyncio.run(main(given[0] if given else 1000, given[1] if len(given) > 1 else 4))
