"""Cost of the rollout path: whole attempts against a bare loop of the same sandboxed process.

Run apart from the tests: ``python tests/benchmarks/bench_rollout.py [attempts] [parallel] [kind]``.
The bar (issue 2): whole attempts with a no-op harness and verifier cost at most 3 x the bare
loop. The two alternate in blocks, so that other load on the machine falls on both.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from milo.core.attempt import AttemptKey
from milo.core.harness import Harness
from milo.core.ports import AttemptJob, Caps, Command, EnvironmentSpec, Sandbox
from milo.core.task import Limits, Task
from milo.core.tree import File, FileTree
from milo.rollout.local import choose
from milo.rollout.runner import LocalAttemptRunner
from milo.testing.gateways import FixedClock, ScriptedGateway

BLOCKS = 5
NOTHING = {
    "python": ("python3 main.py", "main.py", "pass\n"),
    "sh": ("sh main.sh", "main.sh", ":\n"),
}
TEST = b"#!/bin/sh\necho 1 > $MILO_LOGS/verifier/reward.txt\n"


def noop_harness(kind: str) -> Harness:
    """A harness that does nothing."""
    entry, name, text = NOTHING[kind]
    manifest = f'name = "noop"\nentry = "{entry}"\n'
    return Harness.from_tree(FileTree.of_texts({"harness.toml": manifest, name: text}))


async def bare(sandbox: Sandbox, harness: Harness, count: int, parallel: int) -> float:
    """Start the harness's process `count` times in environments that are made once; seconds."""
    mounts = {"/harness": harness.tree}
    spec = EnvironmentSpec(workspace=FileTree(), mounts=mounts, limits=Limits(), owner="bench")
    left = iter(range(count))
    command = Command(argv=harness.manifest.entry, timeout_s=30)

    async def worker() -> None:
        environment = await sandbox.open(spec)
        for _ in left:
            assert (await environment.run(command)).code == 0
        await environment.close()

    begun = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(parallel)))
    return time.perf_counter() - begun


async def whole(runner: LocalAttemptRunner, harness: Harness, count: int, parallel: int) -> float:
    """Run `count` whole attempts; seconds."""
    tests = FileTree({"test.sh": File(TEST, True)})
    task = Task(id="noop", instruction="Do nothing.", tests=tests)
    left = iter(range(count))

    async def worker() -> None:
        for index in left:
            key = AttemptKey(
                harness=harness.digest, task=task.id, task_digest="d", model="m", index=index
            )
            result = await runner.run(AttemptJob(key=key, harness=harness, task=task))
            assert result.outcome.reward == 1.0, result.outcome

    begun = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(parallel)))
    return time.perf_counter() - begun


async def main(count: int, parallel: int, kind: str) -> float:
    """Measure, print, and return the ratio."""
    sandbox, harness = choose("auto"), noop_harness(kind)
    with tempfile.TemporaryDirectory() as folder:
        gateway = ScriptedGateway(Path(folder) / "gateway.sock")
        await gateway.start()
        runner = LocalAttemptRunner(sandbox, gateway, Caps(), "bench", FixedClock())
        block = max(1, count // BLOCKS)
        bare_s = whole_s = 0.0
        for _ in range(BLOCKS):
            bare_s += await bare(sandbox, harness, block, parallel)
            whole_s += await whole(runner, harness, block, parallel)
        await gateway.stop()
    done = block * BLOCKS
    print(f"{sandbox.description}; {done} x {kind}, {parallel} at once")
    print(f"bare loop {bare_s / done * 1e3:.1f} ms, whole attempt {whole_s / done * 1e3:.1f} ms")
    print(f"ratio {whole_s / bare_s:.2f} (bar 3.00)")
    return whole_s / bare_s


if __name__ == "__main__":
    given = sys.argv[1:]
    asyncio.run(
        main(
            int(given[0]) if given else 1000,
            int(given[1]) if len(given) > 1 else 4,
            given[2] if len(given) > 2 else "python",
        )
    )
