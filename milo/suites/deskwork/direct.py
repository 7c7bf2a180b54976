"""Run a deskwork task without a sandbox: for our own reference solutions, never for a harness."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from asyncio import subprocess
from dataclasses import dataclass
from pathlib import Path

from milo.core.task import Task
from milo.core.tree import FileTree

TIMEOUT_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """The verifier's reward (None where it gave none) and its public words."""

    reward: float | None
    report: str


async def run_task(task: Task, solution: FileTree | None) -> float | None:
    """The reward after `solve.sh` of the solution, or after nothing (a `check.RunTask`)."""
    return (await judge(task, solution)).reward


async def judge(task: Task, solution: FileTree | None) -> Judgement:
    """Run `solve.sh` (if a solution is given) and the verifier in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="milo-direct-") as name:
        root = Path(name)
        task.workspace.write_to(root / "workspace")
        if solution is not None:
            solution.write_to(root / "solution")
            await _run(root, "solution/solve.sh", task)
        return await _verify(root, task)


async def judge_folder(task: Task, workspace: FileTree) -> Judgement:
    """The verifier's word on a workspace as somebody left it."""
    with tempfile.TemporaryDirectory(prefix="milo-direct-") as name:
        workspace.write_to(Path(name) / "workspace")
        return await _verify(Path(name), task)


async def _verify(root: Path, task: Task) -> Judgement:
    (root / "logs").mkdir()
    task.tests.write_to(root / "tests")
    await _run(root, "tests/test.sh", task)
    reward, report = root / "logs/verifier/reward.json", root / "logs/verifier/report.txt"
    return Judgement(
        reward=json.loads(reward.read_text())["reward"] if reward.exists() else None,
        report=report.read_text() if report.exists() else "",
    )


async def _run(root: Path, script: str, task: Task) -> None:
    """Run one of our scripts in the workspace; waits for its end or the time limit."""
    interpreter = Path(sys.executable).parent
    process = await subprocess.create_subprocess_exec(
        str(root / script),
        cwd=root / "workspace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            "PATH": os.pathsep.join((str(interpreter), "/usr/local/bin", "/usr/bin", "/bin")),
            "MILO_TESTS": str(root / "tests"),
            "MILO_LOGS": str(root / "logs"),
            "MILO_WORKSPACE": str(root / "workspace"),
            **task.env,
        },
    )
    try:
        await asyncio.wait_for(process.wait(), TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
