"""`milo suite list` and `suite check`: which suites there are, and whether one can be trusted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from milo.app.convert import nearest
from milo.core.errors import TaskError
from milo.core.ports import Command, EnvironmentSpec, Sandbox
from milo.core.task import Task
from milo.core.tree import FileTree
from milo.rollout.local import choose
from milo.rollout.verifier import verify
from milo.suites import deskwork
from milo.suites.check import SuiteReport, check_tasks
from milo.suites.harbor import load_folder
from milo.suites.suite import BUILT_IN


def list_suites() -> str:
    """The built-in suites with their families, one line each."""
    families = ", ".join(family.NAME for family in deskwork.FAMILIES)
    return f"deskwork  {families} ({deskwork.COUNT} tasks each); suite=PATH takes a folder"


def check_suite(path: str) -> int:
    """Check every task in a sandbox, print what was found; 1 if any task is not to be trusted.

    Raises `TaskError` for a folder that is no suite.
    """
    tasks = load_tasks(path)
    sandbox = choose()
    print(f"{len(tasks)} tasks; {sandbox.description}", flush=True)
    report = asyncio.run(examine(tasks, sandbox, len(os.sched_getaffinity(0))))
    print(describe(report))
    return 1 if report.quarantined else 0


def load_tasks(path: str) -> Mapping[str, Task]:
    """The tasks of a folder, or of a built-in suite."""
    if path in BUILT_IN:
        return deskwork.generate()
    if not Path(path).is_dir():
        meant = nearest(path, BUILT_IN)
        hint = f"; did you mean {meant!r}?" if meant else ""
        raise TaskError(
            "suite", f"a folder of tasks, or one of {', '.join(BUILT_IN)}", f"{path!r}{hint}"
        )
    return load_folder(Path(path))


async def examine(tasks: Mapping[str, Task], sandbox: Sandbox, parallel: int) -> SuiteReport:
    """Run a no-op and the reference solution of every task, `parallel` at a time."""

    async def run_task(task: Task, solution: FileTree | None) -> float | None:
        return await run_solution(sandbox, task, solution)

    return await check_tasks(tasks.values(), run_task, parallel=parallel)


async def run_solution(sandbox: Sandbox, task: Task, solution: FileTree | None) -> float | None:
    """The reward of a reference solution (None: of nothing at all) on a fresh workspace."""
    owner = f"suite-check-{os.getpid()}"
    environment = await sandbox.open(
        EnvironmentSpec(workspace=task.workspace, mounts={}, limits=task.limits, owner=owner)
    )
    try:
        if solution is not None:
            await environment.mount("/solution", solution)
            await environment.run(
                Command(
                    argv=("bash", "/solution/solve.sh"),
                    timeout_s=task.limits.agent_timeout_s,
                    env=task.env,
                )
            )
        return (await verify(environment, task)).reward
    finally:
        await environment.close()


def describe(report: SuiteReport) -> str:
    """What a check found, bad tasks by name."""
    lines = [f"bad   {bad.task}: {bad.reason}" for bad in report.quarantined]
    if report.unproved:
        lines.append(f"{len(report.unproved)} tasks have no reference solution")
    good = report.checked - len(report.quarantined)
    lines.append(f"{good} of {report.checked} tasks can be trusted")
    return "\n".join(lines)
