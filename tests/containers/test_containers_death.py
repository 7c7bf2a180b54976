"""The engine, or who makes an image, dies in the middle: nothing counts, nothing is left."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from base_image import BASE, make_base_image

from milo.core.attempt import AttemptKey, Status
from milo.core.errors import MiloError
from milo.core.harness import Harness
from milo.core.ports import AttemptJob, Caps, EnvironmentSpec, Sandbox
from milo.core.task import Limits, Task
from milo.core.tree import FileTree
from milo.rollout.docker.choose import choose_docker
from milo.rollout.docker.engine import Engine, connect
from milo.rollout.docker.images import ImageStore
from milo.rollout.docker.sandbox import DockerSandbox
from milo.rollout.runner import LocalAttemptRunner
from milo.testing.gateways import FixedClock, ScriptedGateway
from milo.testing.sandbox_cases import python

pytestmark = [
    # The SDK leaves a socket that could not be connected to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.timeout(180),
]
TICK = "import time\nfor n in range(9999):\n time.sleep(.02); open('tick', 'w').write(str(n))\n"
MANIFEST = 'name = "ticks"\nentry = "python3 main.py"\n'
BUILDER = """
import asyncio, sys
from pathlib import Path
from milo.core.task import Image
from milo.core.tree import FileTree
from milo.rollout.docker.engine import connect
from milo.rollout.docker.images import ImageStore

dockerfile, address, folder = sys.argv[1:]
store = ImageStore(connect(address), Path(folder), 1000)
asyncio.run(store.get(Image(context=FileTree.of_texts({"Dockerfile": dockerfile}))))
"""


class OwnEngine:
    """An engine that is killed and started again."""

    def __init__(self, control: Callable[[str], str], scratch: Path) -> None:
        self._control = control
        self.address = control("up")
        make_base_image(connect(self.address).api, BASE)
        self.scratch = scratch

    def sandbox(self) -> DockerSandbox:
        return choose_docker(BASE, address=self.address, root=self.scratch)

    def kill(self) -> None:
        place = Path(self.address.removeprefix("unix://")).parent
        os.kill(int((place / "docker.pid").read_text()), signal.SIGKILL)

    def start(self) -> None:
        self._control("up")

    async def tick(self, run: str) -> Path:
        """The file that a command of the run writes again and again."""
        ticks: list[Path] = []
        while not ticks:
            await asyncio.sleep(0.05)
            ticks = list(self.scratch.glob(f"milo-{run}.*/workspace/tick"))
        return ticks[0]

    async def stands_still(self, tick: Path) -> bool:
        await asyncio.sleep(0.5)
        before = tick.read_text()
        await asyncio.sleep(0.4)
        return tick.read_text() == before


@pytest.fixture
def doomed(own_engine: Callable[[str], str], scratch: Path) -> OwnEngine:
    return OwnEngine(own_engine, scratch)


@pytest.mark.parametrize("at_once", [False, True], ids=["stays dead", "is started at once"])
async def test_a_dead_engine_is_our_fault_and_leaves_no_process(
    doomed: OwnEngine, at_once: bool
) -> None:
    """One that is started at once says of its containers only that they were killed."""
    limits = Limits(memory_mb=128, storage_mb=8, processes=24)
    spec = EnvironmentSpec(workspace=FileTree(), mounts={}, limits=limits, owner="dies")
    environment = await doomed.sandbox().open(spec)
    running = asyncio.create_task(environment.run(python(TICK, timeout_s=60)))
    tick = await doomed.tick("dies")
    doomed.kill()
    if at_once:
        await asyncio.to_thread(doomed.start)
    with pytest.raises(MiloError):
        await running
    assert await doomed.stands_still(tick)
    if not at_once:
        with pytest.raises(MiloError):
            await environment.close()
        doomed.start()
    fresh: Sandbox = doomed.sandbox()
    assert await fresh.reap("dies") >= 1
    del running
    gc.collect()
    assert list(doomed.scratch.iterdir()) == []


async def test_an_attempt_during_which_the_engine_died_is_missing_and_no_zero(
    doomed: OwnEngine, tmp_path: Path
) -> None:
    tree = FileTree.of_texts({"harness.toml": MANIFEST, "main.py": TICK})
    harness = Harness.from_tree(tree)
    task = Task(id="t", instruction="i", tests=FileTree.of_texts({"test.sh": "#!/bin/sh\n"}))
    key = AttemptKey(harness=tree.digest, task="t", task_digest=task.digest, model="m", index=0)
    gateway = ScriptedGateway(tmp_path / "gateway.sock")
    runner = LocalAttemptRunner(doomed.sandbox(), gateway, Caps(), "missing", FixedClock())
    attempt = asyncio.create_task(runner.run(AttemptJob(key=key, harness=harness, task=task)))
    await doomed.tick("missing")
    doomed.kill()
    await asyncio.to_thread(doomed.start)
    outcome = (await attempt).outcome
    assert outcome.status is Status.ENVIRONMENT_ERROR and outcome.status.is_infrastructure
    assert outcome.reward is None and "engine" in outcome.detail
    await doomed.sandbox().reap("missing")
    assert list(doomed.scratch.iterdir()) == []


async def test_what_a_killed_maker_of_an_image_left_is_tidied_up(
    engine: Engine, address: str, tmp_path: Path
) -> None:
    mark, folder = tmp_path.name, tmp_path / "locks"
    text = f"FROM {BASE}\nRUN echo {mark} > /1\nRUN echo {mark} > /2\nRUN : {mark}; sleep 300\n"
    builder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", BUILDER, text, address, str(folder))
    )
    while not any(f": {mark}" in one["Command"] for one in engine.api.containers()):
        assert builder.returncode is None
        await asyncio.sleep(0.1)
    (record,) = folder.glob("*.layers")
    base = {one["Id"] for one in engine.api.history(BASE)}
    made = {one["Id"] for one in engine.api.history(record.read_text())} - base
    assert len(made) == 2
    store = ImageStore(engine, folder, 1000)
    await store.tidy()
    assert record.is_file(), "a build under way is let alone"
    builder.kill()
    await builder.wait()
    while record.exists():
        await asyncio.sleep(0.1)  # the engine takes a moment to end the step that ran
        await store.tidy()
    assert not made & {one["Id"] for one in engine.api.images(all=True)}
