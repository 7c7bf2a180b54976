"""A runner over the strongest local sandbox and a scripted model, for attacks on the verifier."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from milo.core.attempt import AttemptKey
from milo.core.errors import ConfigError
from milo.core.ports import AttemptJob, AttemptResult, Caps
from milo.core.task import Task
from milo.rollout.local import choose
from milo.rollout.runner import LocalAttemptRunner
from milo.testing.gateways import FixedClock, ScriptedGateway
from milo.testing.sandbox_cases import let_others_pass
from milo.testing.sorting import harness_of, sorting_task

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
async def runner(tmp_path: Path, scratch: Path) -> AsyncIterator[LocalAttemptRunner]:
    """A runner on bubblewrap; skipped with the reason where it can't work."""
    try:
        sandbox = choose("bubblewrap", root=scratch)
    except ConfigError as error:
        pytest.skip(str(error))
    gateway = ScriptedGateway(tmp_path / "g.sock", lambda prompt: "[1, 2, 3]")
    await gateway.start()
    yield LocalAttemptRunner(sandbox, gateway, Caps(), ATTACKER, FixedClock())
    await gateway.stop()


@pytest.fixture
def attempt(runner: LocalAttemptRunner) -> Attempt:
    """Runs one attempt of a harness given by its source."""

    async def run(main: str, task: Task | None = None, **more: str) -> AttemptResult:
        task, harness = task or sorting_task(), harness_of(main, **more)
        key = AttemptKey(
            harness=harness.digest, task=task.id, task_digest=task.digest, model="m", index=0
        )
        return await runner.run(AttemptJob(key=key, harness=harness, task=task))

    return run
