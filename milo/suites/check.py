"""Whether a suite can be trusted: each reference solution must score full and a no-op must not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from milo.core.errors import MiloError, SandboxLost
from milo.core.task import Suite, Task
from milo.core.tree import FileTree

RunTask = Callable[[Task, FileTree | None], Awaitable[float | None]]
"""Runs `solve.sh` of a solution tree (None: nothing at all) on a fresh workspace, then the
verifier; the reward, or None where the verifier gave none. In a task with steps every step's own
solution runs. Raises `MiloError` to say why there is no reward, and `SandboxLost` where that is no
task's fault."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quarantined:
    """A task that must not be used, and why."""

    task: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteReport:
    """What a check found. `unproved` tasks have no reference solution; their no-op was run.
    `generous` ones give part of the reward for nothing."""

    checked: int
    quarantined: tuple[Quarantined, ...]
    unproved: tuple[str, ...]
    generous: tuple[Quarantined, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Verdict:
    fault: str = ""
    generous: str = ""


async def check_suite(suite: Suite, run_task: RunTask, *, parallel: int = 4) -> SuiteReport:
    """Check every task of the suite, `parallel` at a time."""
    return await check_tasks(suite.tasks.values(), run_task, parallel=parallel)


async def check_tasks(
    tasks: Iterable[Task], run_task: RunTask, *, parallel: int = 4, partial: bool = False
) -> SuiteReport:
    """Check these tasks; quarantined tasks are named in the order given.

    With `partial` a no-op may be given part of the reward, as graded tasks of others do.
    """
    slots = asyncio.Semaphore(parallel)

    async def one(task: Task) -> _Verdict:
        async with slots:
            return await _verdict(task, run_task, partial=partial)

    chosen = list(tasks)
    verdicts = await asyncio.gather(*(one(task) for task in chosen))
    pairs = list(zip(chosen, verdicts, strict=True))
    return SuiteReport(
        checked=len(chosen),
        quarantined=tuple(
            Quarantined(task=task.id, reason=verdict.fault)
            for task, verdict in pairs
            if verdict.fault
        ),
        unproved=tuple(task.id for task in chosen if not task.has_solution),
        generous=tuple(
            Quarantined(task=task.id, reason=verdict.generous)
            for task, verdict in pairs
            if verdict.generous
        ),
    )


async def _verdict(task: Task, run_task: RunTask, *, partial: bool) -> _Verdict:
    """Whether the task is to be trusted; a sandbox that is gone says nothing about it."""
    try:
        idle = await run_task(task, None)
    except SandboxLost:
        raise
    except MiloError as error:
        return _Verdict(fault=f"a no-op must be judged: {error}")
    wanted = f"less than {task.resolved_at:g}" if partial else "0"
    if idle is None or idle >= task.resolved_at or (idle != 0 and not partial):
        return _Verdict(fault=f"a no-op must score {wanted}, found {_words(idle)}")
    generous = f"a no-op scores {idle:g}" if idle else ""
    if not task.has_solution:
        return _Verdict(generous=generous)
    wanted = f"the reference solution must score {task.resolved_at:g}"
    try:
        solved = await run_task(task, task.solution)
    except SandboxLost:
        raise
    except MiloError as error:
        return _Verdict(fault=f"{wanted}: {error}")
    if solved is None or solved < task.resolved_at:
        return _Verdict(fault=f"{wanted}, found {_words(solved)}")
    return _Verdict(generous=generous)


def _words(reward: float | None) -> str:
    return "no reward" if reward is None else f"{reward:g}"
