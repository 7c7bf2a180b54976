"""Runners over real sandboxes, the real gateway and a scripted model, for attacks on them all."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from milo.core.attempt import AttemptKey
from milo.core.errors import ConfigError
from milo.core.ports import AttemptJob, AttemptResult, Caps, Sandbox
from milo.core.task import Task
from milo.gateway.line import Line, Policy
from milo.gateway.pins import Pins
from milo.gateway.proxy import Gateway
from milo.rollout.local import choose
from milo.rollout.runner import LocalAttemptRunner
from milo.testing.gateways import FixedClock
from milo.testing.sandbox_cases import let_others_pass
from milo.testing.scripted_model import ScriptedUpstream, always
from milo.testing.sorting import harness_of, sorting_task

# The base image of the container tests, and the small world of the whole runs.
sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("containers", "runtime")]

ATTACKER = "redteam"
Attempt = Callable[..., Awaitable[AttemptResult]]


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Where environments lie; commands of another user must be able to pass through."""
    root = tmp_path / "scratch"
    root.mkdir()
    let_others_pass(root)
    return root


@pytest.fixture
def socket_dir() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="red-"))
    yield folder
    shutil.rmtree(folder)


@asynccontextmanager
async def attempts_in(sandbox: Sandbox, folder: Path) -> AsyncIterator[Attempt]:
    """Runs one attempt of a harness given by its source. The model says what is right."""
    upstream = ScriptedUpstream(always("[1, 2, 3]"), price=0.001)
    line = Line(
        upstream=upstream,
        pins=Pins(model="scripted"),
        rng=np.random.default_rng(0),
        policy=Policy(tries=1),
    )
    gateway = Gateway(line, folder / "g.sock")
    await gateway.start()
    runner = LocalAttemptRunner(sandbox, gateway, Caps(calls=20), ATTACKER, FixedClock())

    async def run(main: str, task: Task | None = None, **more: str) -> AttemptResult:
        task, harness = task or sorting_task(), harness_of(main, **more)
        key = AttemptKey(
            harness=harness.digest, task=task.id, task_digest=task.digest, model="m", index=0
        )
        result = await runner.run(AttemptJob(key=key, harness=harness, task=task))
        assert result.outcome.usage.calls == upstream.tally.calls, "the meter misses nothing"
        upstream.tally.calls = 0
        return result

    try:
        yield run
    finally:
        await gateway.stop()


@pytest.fixture
async def attempt(scratch: Path, socket_dir: Path) -> AsyncIterator[Attempt]:
    """Attempts on bubblewrap; skipped with the reason where it can't work."""
    try:
        sandbox = choose("bubblewrap", root=scratch)
    except ConfigError as error:
        pytest.skip(str(error))
    async with attempts_in(sandbox, socket_dir) as run:
        yield run


@pytest.fixture
async def contained(scratch: Path, socket_dir: Path) -> AsyncIterator[Attempt]:
    """Attempts in containers, on the engine that DOCKER_HOST names."""
    from base_image import BASE, make_base_image, missing_tools

    from milo.rollout.docker.choose import choose_docker
    from milo.rollout.docker.engine import connect

    address = os.environ.get("DOCKER_HOST", "")
    if not address:
        pytest.skip(os.environ.get("MILO_NO_ENGINE") or "DOCKER_HOST is not set (scripts/engine)")
    if reason := missing_tools():
        pytest.skip(reason)
    try:
        make_base_image(connect(address).api, BASE)
    except ConfigError as error:
        pytest.skip(str(error))
    async with attempts_in(choose_docker(BASE, address=address, root=scratch), socket_dir) as run:
        yield run
