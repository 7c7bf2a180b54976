"""Expert harnesses, as `milo seed add` makes them, solve the built-in suite's first tasks against a
scripted model: in the local sandbox and on the engine.

Each is skipped with the reason where its packages aren't installed (`milo seed add NAME`).
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from base_image import make_base_image

from milo.app import own_python, recipes
from milo.app.compose import SystemClock
from milo.app.packages import Shelf, programs_folder
from milo.core.attempt import AttemptKey, Status
from milo.core.harness import Harness
from milo.core.ports import AttemptJob, AttemptResult, Caps, Sandbox
from milo.core.task import Task
from milo.core.tree import FileTree
from milo.gateway.line import Line
from milo.gateway.pins import Pins
from milo.gateway.proxy import Gateway
from milo.rollout.docker.choose import choose_docker
from milo.rollout.docker.engine import Engine
from milo.rollout.local import choose
from milo.rollout.runner import LocalAttemptRunner
from milo.suites import deskwork
from milo.testing.scripted_model import Script, ScriptedUpstream, always
from milo.testing.tool_user import doing

NAMES = tuple(name for name in recipes.names() if name != "goose")
"""Goose's program is in no registry."""
IMAGE, BARE = "milo/base:experts", "milo/base:no-python"
USUAL = (
    *("libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libdl.so.2", "libpthread.so.0"),
    *("librt.so.1", "libutil.so.1", "libresolv.so.2"),
)
"""What every image of a distribution has: the C library, and what Node wants."""

pytestmark = [pytest.mark.timeout(900), pytest.mark.parametrize("name", NAMES)]


@cache
def first_tasks(seconds: float = 300.0) -> tuple[Task, ...]:
    """The first task of every family, with time enough for the slowest start on a busy machine."""
    tasks = deskwork.generate(count=1).values()
    return tuple(replace(t, limits=replace(t.limits, agent_timeout_s=seconds)) for t in tasks)


@cache
def expert(name: str) -> Harness:
    """A harness as it would be added; skips where its packages aren't here."""
    recipe = recipes.load(name)
    packages = Harness.from_tree(recipe.files).manifest.packages
    folder = Shelf(programs_folder()).find(packages) if packages else None
    if packages and folder is None:
        pytest.skip(f"{packages} not installed in {programs_folder()} (milo seed add {name})")
    return Harness.from_tree(recipe.harness("", folder))


@pytest.fixture(params=["local", "engine"])
def place(request: pytest.FixtureRequest, scratch: Path) -> Sandbox:
    """Both places in which attempts run."""
    if request.param == "local":
        if shutil.which("bwrap") is None:
            pytest.skip("bubblewrap is not installed")
        return choose("bubblewrap", root=scratch)
    engine: Engine = request.getfixturevalue("engine")
    make_base_image(engine.api, IMAGE, USUAL)
    return choose_docker(IMAGE, address=request.getfixturevalue("address"), root=scratch)


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """Sockets' names are short, and pytest's folders deep."""
    with tempfile.TemporaryDirectory(prefix="milo-experts-") as folder:
        yield Path(folder)


@asynccontextmanager
async def runner(
    sandbox: Sandbox, script: Script, folder: Path
) -> AsyncIterator[LocalAttemptRunner]:
    """A runner over a real gateway with the scripted model behind it."""
    upstream = ScriptedUpstream(script)
    line = Line(upstream=upstream, pins=Pins(model=upstream.model), rng=np.random.default_rng(0))
    gateway = Gateway(line, folder / "gateway.sock")
    await gateway.start()
    try:
        find = Shelf(programs_folder()).find
        yield LocalAttemptRunner(
            sandbox, gateway, Caps(calls=20), "experts", SystemClock(), find=find
        )
    finally:
        await gateway.stop()
        await sandbox.reap("experts")


def job(harness: Harness, task: Task) -> AttemptJob:
    key = AttemptKey(harness=harness.digest, task=task.id, task_digest="d", model="m", index=0)
    return AttemptJob(key=key, harness=harness, task=task)


def reference(task: Task) -> str:
    """The reference solution as one command."""
    assert task.solution is not None
    return (
        "cat > /tmp/solve.sh <<'END'\n"
        + task.solution.text("solve.sh")
        + "\nEND\nbash /tmp/solve.sh"
    )


async def attempts(
    sandbox: Sandbox, harness: Harness, script: Script, folder: Path
) -> list[AttemptResult]:
    """One attempt on each of the first tasks, two at a time."""
    two = asyncio.Semaphore(2)
    async with runner(sandbox, script, folder) as made:

        async def one(task: Task) -> AttemptResult:
            async with two:
                return await made.run(job(harness, task))

        assert await made.smoke(harness) == ""
        return await asyncio.gather(*(one(task) for task in first_tasks()))


async def test_it_solves_the_first_tasks_with_a_model_that_knows_how(
    name: str, place: Sandbox, socket_folder: Path
) -> None:
    harness = expert(name)
    script = doing({task.instruction.strip(): reference(task) for task in first_tasks()})
    for result in await attempts(place, harness, script, socket_folder):
        said = (
            f"{result.outcome.detail}\n{result.trace.stdout[-3000:]}\n{result.trace.stderr[-3000:]}"
        )
        assert result.outcome.reward == 1.0, said
        assert result.outcome.status is Status.COMPLETED, said
        assert result.outcome.usage.calls >= 2


async def test_it_solves_nothing_with_a_model_that_does_nothing(
    name: str, place: Sandbox, socket_folder: Path
) -> None:
    """What breaks without it: the test above could pass whatever the harness does."""
    harness = expert(name)
    async with runner(place, always("I can't."), socket_folder) as made:
        result = await made.run(job(harness, first_tasks(60.0)[0]))
    assert result.outcome.reward == 0.0, result.outcome.detail


async def test_an_edit_of_its_source_is_what_runs(
    name: str, place: Sandbox, socket_folder: Path
) -> None:
    """What breaks without it: mutators edit a copy that nobody reads."""
    harness = expert(name)
    broken = {path: text for path, text in EDITS[name].items() if path in harness.tree}
    assert broken == EDITS[name]
    child = Harness.from_tree(harness.tree.with_texts(broken))
    async with runner(place, always("I can't."), socket_folder) as made:
        error = await made.smoke(child)
    assert "smoke command ended" in error and MARK in error


async def test_it_brings_its_python_where_an_image_has_none(
    name: str, engine: Engine, address: str, scratch: Path, socket_folder: Path
) -> None:
    """What breaks without it: it works in images with this machine's Python only."""
    harness = expert(name)
    folder = Shelf(programs_folder()).find(harness.manifest.packages)
    if folder is None or not (folder / own_python.FOLDER).is_dir():
        pytest.skip("it has no Python, or one from before each had its own")
    make_base_image(engine.api, BARE, USUAL, python=False)
    sandbox = choose_docker(BARE, address=address, root=scratch)
    task = Task(
        id="write-42",
        instruction="Write 42 to out.txt.",
        tests=FileTree.of_texts({"test.sh": GRADE}),
        limits=first_tasks()[0].limits,
    )
    script = doing({task.instruction: "! command -v python3 && echo 42 > out.txt"})
    async with runner(sandbox, script, socket_folder) as made:
        result = await made.run(job(harness, task))
    assert result.outcome.reward == 1.0, f"{result.outcome.detail}\n{result.trace.stderr}"


GRADE = "#!/bin/sh\ngrep -q 42 out.txt && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n"
MARK = "milo-was-here"
PYTHON = f"raise SystemExit('{MARK}')\n"
EDITS = {
    "cline": {"main.sh": f"echo {MARK} >&2; exit 3\n"},
    "deepagents": {"deepagents/graph.py": PYTHON},
    "mini_swe_agent": {"minisweagent/agents/__init__.py": PYTHON},
    "minimal": {"tools.py": PYTHON},
    "opencode": {"config/opencode.json": f'{{"{MARK}": '},
    "openhands": {"openhands/sdk/__init__.py": PYTHON},
    "qwen_code": {"home/settings.json": f'{{"{MARK}": '},
    "terminus_2": {"terminal.py": PYTHON},
}
"""An edit for each that its smoke test tells."""
