"""`milo suite list` and `suite check`: which suites there are, and whether one can be trusted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from milo.app.convert import nearest
from milo.app.numeric import equipped
from milo.app.sandboxes import choose_sandbox
from milo.core.errors import MiloError, SandboxLost, TaskError
from milo.core.judge import JUDGE_FILE
from milo.core.plan import ClusterPlan
from milo.core.ports import Command, Environment, Exit, Sandbox
from milo.core.task import Network, Task
from milo.core.tree import FileTree
from milo.rollout.judged.spec import spec_of
from milo.rollout.runner import check_needs
from milo.rollout.staging import prepare, start_of, until_healthy
from milo.rollout.verifier import Judgement, combined, falls_short, judge
from milo.suites import deskwork, quarantine
from milo.suites.check import Quarantined, SuiteReport, check_tasks
from milo.suites.folder import Scan, loader_of, scan_folder
from milo.suites.quarantine import Held
from milo.suites.suite import BUILT_IN, built_in_tasks

OK, FAILED = 0, 1
OWNER = "suite-check"
SAID_LINES, FAULT_LINES = 10, 3
"""Lines shown of what a bad task's tests and solution said, and of these at most of a solution."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Examined:
    """What a check of a suite found: tasks that could not be loaded, those that this sandbox can't
    give what they need, and the report on the rest. `said` is what the last run of a task said."""

    broken: tuple[Quarantined, ...]
    refused: tuple[Quarantined, ...]
    report: SuiteReport
    said: Mapping[str, str] = field(default_factory=dict)


def list_suites() -> str:
    """The built-in suites with their families, one line each."""
    families = ", ".join(family.NAME for family in deskwork.FAMILIES)
    return (
        f"deskwork  {families} ({deskwork.COUNT} tasks each); suite=PATH takes a folder\n"
        "arena     open mathematical problems, for optimizer programs (docs/arena.md)"
    )


def check_suite(
    path: str, *, sandbox: str = "auto", network: str = "no-network", image: str = ""
) -> int:
    """Check every task in a sandbox, print what was found; quarantine bad ones of a folder.

    `network` is for tasks that say nothing about it, `image` (where it isn't the usual one) for
    tasks without an image in containers. 1 where a task is not to be trusted, or none
    could be checked. Raises `TaskError` for a folder that is no suite.
    """
    scan = load_tasks(path, Network(network))
    usual = ClusterPlan(sandbox=sandbox)
    cluster = replace(usual, image=image or usual.image)
    place = equipped(choose_sandbox(cluster), scan.tasks.values())
    count = "1 task" if len(scan.tasks) == 1 else f"{len(scan.tasks)} tasks"
    print(f"{count}; {place.description}", flush=True)
    parallel = len(os.sched_getaffinity(0))
    found = asyncio.run(examine(scan, place, parallel, partial=path not in BUILT_IN))
    print(describe(found))
    if path not in BUILT_IN and loader_of(Path(path)) is None:
        print(isolate(Path(path), scan, found))
    good = found.report.checked > 0 and not (found.broken or found.report.quarantined)
    return OK if good else FAILED


def load_tasks(path: str, network: Network = Network.NONE) -> Scan:
    """The tasks of a folder, or of a built-in suite."""
    if path in BUILT_IN:
        return Scan(tasks=built_in_tasks(path), broken={})
    if not Path(path).is_dir():
        meant = nearest(path, BUILT_IN)
        hint = f"; did you mean {meant!r}?" if meant else ""
        raise TaskError(
            "suite", f"a folder of tasks, or one of {', '.join(BUILT_IN)}", f"{path!r}{hint}"
        )
    return scan_folder(Path(path), network)


async def examine(scan: Scan, sandbox: Sandbox, parallel: int, *, partial: bool) -> Examined:
    """Run a no-op and the reference solution of every task, `parallel` at a time.

    With `partial` a no-op may be given part of the reward. Raises `SandboxLost` where the sandbox
    is lost for good: that is no task's fault.
    """
    broken = {name: str(error) for name, error in scan.broken.items()} | _misjudged(scan)
    whole = (task for name, task in scan.tasks.items() if name not in broken)
    refused = _refused(whole, sandbox)
    said: dict[str, str] = {}

    async def run_task(task: Task, solution: FileTree | None) -> float | None:
        try:
            judgement = await run_solution(sandbox, task, solution)
        except SandboxLost:  # an engine that died is waited for where the next environment is made
            judgement = await run_solution(sandbox, task, solution)
        said[task.id] = "\n".join(filter(None, (judgement.output, judgement.detail)))
        if judgement.reward is None:
            raise MiloError(judgement.detail)
        return judgement.reward

    able = [task for name, task in scan.tasks.items() if name not in {*broken, *refused}]
    await sandbox.reap(OWNER)  # what an earlier check left that was killed
    return Examined(
        broken=tuple(Quarantined(task=name, reason=why) for name, why in broken.items()),
        refused=tuple(Quarantined(task=name, reason=why) for name, why in refused.items()),
        report=await check_tasks(able, run_task, parallel=parallel, partial=partial),
        said=said,
    )


def _misjudged(scan: Scan) -> dict[str, str]:
    """Tasks that a model is to judge, and that don't say properly how."""
    found = {}
    for task in scan.tasks.values():
        try:
            if JUDGE_FILE in task.tests:
                spec_of(task)
        except TaskError as error:
            found[task.id] = str(error)
    return found


def _refused(tasks: Iterable[Task], sandbox: Sandbox) -> dict[str, str]:
    """Tasks that can't be checked here, and why."""
    found = {}
    for task in tasks:
        try:
            check_needs(task, sandbox)
            if JUDGE_FILE in task.tests:
                found[task.id] = "a model judges it, and none is asked here"
        except TaskError as error:
            found[task.id] = str(error)
    return found


async def run_solution(sandbox: Sandbox, task: Task, solution: FileTree | None) -> Judgement:
    """How a reference solution (None: nothing at all) is judged on a fresh workspace.

    In a task with steps each step's own solution stands for `solution`. The output ends with what
    a solution said that failed.
    """
    environment = await sandbox.open(start_of(task, OWNER))
    try:
        if task.setting.healthcheck is not None:
            await until_healthy(environment, task, task.setting.healthcheck)
        if task.steps:
            return await _in_steps(sandbox, environment, task, solves=solution is not None)
        said = ""
        if solution is not None:
            said = await _solve(environment, task, solution, task.limits.agent_timeout_s)
        return _after(said, await judge(sandbox, environment, task, OWNER))
    finally:
        await environment.close()


async def _in_steps(
    sandbox: Sandbox, environment: Environment, task: Task, *, solves: bool
) -> Judgement:
    judgements: list[Judgement] = []
    for step in task.steps:
        await prepare(environment, task, step)
        said = ""
        if solves:
            said = await _solve(environment, task, step.solution, step.agent_timeout_s)
        judgements.append(_after(said, await judge(sandbox, environment, task, OWNER, step)))
        if judgements[-1].reward is None or falls_short(judgements[-1], step):
            break
    return combined(judgements, task.steps, task.step_reward, task.reward_range)


async def _solve(environment: Environment, task: Task, solution: FileTree, timeout_s: float) -> str:
    """Run a reference solution; what it said if it failed."""
    await environment.mount("/solution", solution)
    env = {**task.env, "DEBIAN_FRONTEND": "noninteractive", **task.judging.solution_env}
    argv, user = ("bash", "/solution/solve.sh"), task.setting.user
    ended = await environment.run(Command(argv=argv, timeout_s=timeout_s, env=env, user=user))
    await environment.mount("/solution", FileTree())
    return "" if ended.code == 0 else _fault_of(ended)


def _fault_of(ended: Exit) -> str:
    how = f"its limit of {ended.limit}" if ended.limit else f"code {ended.code}"
    last = _end_of(ended.stdout + ended.stderr)[-FAULT_LINES:]
    return "\n".join(("", f"solve.sh ended with {how}", *last, ""))


def _after(said: str, judgement: Judgement) -> Judgement:
    return replace(judgement, output=judgement.output + said)


def describe(found: Examined) -> str:
    """What a check found, tasks by name."""
    report = found.report
    kinds = (
        ("broken", found.broken),
        ("bad", report.quarantined),
        ("skipped", found.refused),
        ("note", report.generous),
    )
    lines = []
    for kind, ones in kinds:
        for one in ones:
            first, _, rest = one.reason.partition("\n")
            lines.append(f"{kind:7} {one.task}: {_harmless(first)}")
            said = found.said.get(one.task, "") if kind == "bad" else ""
            lines += [f"        | {line}" for line in (*_end_of(rest), *_end_of(said))]
    if report.unproved:
        lines.append(f"{len(report.unproved)} tasks have no reference solution")
    good = report.checked - len(report.quarantined)
    whole = report.checked + len(found.refused) + len(found.broken)
    lines.append(f"{good} of {whole} tasks can be trusted")
    return "\n".join(lines)


def _end_of(said: str) -> list[str]:
    """The last lines of an output, without empty ones and what a terminal would take for orders."""
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    return [_harmless(line) for line in lines[-SAID_LINES:]]


def _harmless(line: str) -> str:
    """A line without what a terminal would take for orders."""
    return "".join(char if char.isprintable() else " " for char in line)


def isolate(folder: Path, scan: Scan, found: Examined) -> str:
    """Write the folder's quarantine anew; in words what is in it.

    What was held and could not be checked here stays held.
    """
    skipped = {one.task for one in found.refused}
    held = {name: one for name, one in quarantine.read(folder).items() if name in skipped}
    for one in (*found.broken, *found.report.quarantined):
        task = scan.tasks.get(one.task)
        held[one.task] = Held(reason=one.reason, digest="" if task is None else task.digest)
    quarantine.write(folder, held)
    if not held:
        return "nothing is in quarantine"
    count = "1 task is" if len(held) == 1 else f"{len(held)} tasks are"
    return f"{count} in quarantine ({folder / quarantine.FILE}), which runs leave out"


def left_out_words(left_out: Mapping[str, str]) -> str:
    """What a run says at its start of tasks that it leaves out; "" where there are none."""
    if not left_out:
        return ""
    names = ", ".join(sorted(left_out)[:5]) + (", …" if len(left_out) > 5 else "")
    return f"left out: {len(left_out)} tasks in quarantine ({names}); `milo suite check` says why"
