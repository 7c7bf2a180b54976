"""Whether a suite can be trusted: each reference solution must score 1 and a no-op 0."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from milo.core.task import Suite, Task
from milo.core.tree import FileTree

RunTask = Callable[[Task, FileTree | None], Awaitable[float | None]]
"""Runs `solve.sh` of a solution tree (None: nothing at all) on a fresh workspace, then the
verifier; the reward, or None where the verifier gave none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quarantined:
    """A task that must not be used, and why."""

    task: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteReport:
    """What a check found. `unproved` tasks have no reference solution; their no-op was run."""

    checked: int
    quarantined: tuple[Quarantined, ...]
    unproved: tuple[str, ...]


async def check_suite(suite: Suite, run_task: RunTask, *, parallel: int = 4) -> SuiteReport:
    """Check every task of the suite, `parallel` at a time."""
    return await check_tasks(suite.tasks.values(), run_task, parallel=parallel)


async def check_tasks(
    tasks: Iterable[Task], run_task: RunTask, *, parallel: int = 4
) -> SuiteReport:
    """Check these tasks; quarantined tasks are named in the order given."""
    slots = asyncio.Semaphore(parallel)

    async def one(task: Task) -> str:
        async with slots:
            return await _fault(task, run_task)

    chosen = list(tasks)
    faults = await asyncio.gather(*(one(task) for task in chosen))
    return SuiteReport(
        checked=len(chosen),
        quarantined=tuple(
            Quarantined(task=task.id, reason=fault)
            for task, fault in zip(chosen, faults, strict=True)
            if fault
        ),
        unproved=tuple(task.id for task in chosen if not task.solution),
    )


async def _fault(task: Task, run_task: RunTask) -> str:
    """Why the task is not to be trusted; "" if it is."""
    idle = await run_task(task, None)
    if idle != 0:
        return f"a no-op must score 0, found {_words(idle)}"
    if not task.solution:
        return ""
    solved = await run_task(task, task.solution)
    if solved is None or solved < task.resolved_at:
        return f"the reference solution must score {task.resolved_at:g}, found {_words(solved)}"
    return ""


def _words(reward: float | None) -> str:
    return "no reward" if reward is None else f"{reward:g}"
