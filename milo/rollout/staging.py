"""What happens in an environment around the harness: files put in place, set-up, health, artifacts.

All of it by commands inside, as whoever the harness is, so that it holds for every sandbox.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from milo.core.errors import MiloError
from milo.core.ports import Command, Environment, EnvironmentSpec, Exit
from milo.core.task import Healthcheck, Step, Task
from milo.core.tree import FileTree

INCOMING = "/milo"
"""Where files wait that a command copies to their place."""
PUT_S = 120.0
SETUP_S = 600.0
SETUP = "setup.sh"
TAIL_CHARS = 500
COPY = """
cp -Rf "$1"/. "$2" && cd "$1" &&
find . -type f -exec sh -c 'for name; do chmod u+w "$0/$name" || exit 1; done' "$2" {} +
"""
COLLECTED = "/logs/artifacts/.collected"
MAX_COLLECTED_KIB = 4000
COLLECT = """
logs=$1 && shift
for path in "$@"; do
    [ -e "$path" ] || continue
    mkdir -p "$logs$(dirname "$path")" && cp -R "$path" "$logs$(dirname "$path")/" || exit 1
done
[ ! -e "$logs" ] || du -sk "$logs" | cut -f1
"""


class Spoiled(MiloError):
    """A command of ours failed in what a harness left, which it would not have elsewhere: the
    task's reference leaves what can be worked with, or the task would not be used."""


def start_of(task: Task, owner: str) -> EnvironmentSpec:
    """The environment in which a task starts, without any mounts."""
    judging = task.judging
    return EnvironmentSpec(
        workspace=task.workspace,
        mounts={},
        limits=task.limits,
        owner=owner,
        setting=task.setting,
        reaches=() if judging.separate or judging.reach is None else (judging.reach,),
        users=_users(task.setting.user, "" if judging.separate else judging.user),
    )


def judged_in(task: Task, owner: str) -> EnvironmentSpec:
    """The environment of a verifier that runs apart."""
    judging = task.judging
    setting = judging.setting or task.setting
    return EnvironmentSpec(
        workspace=task.workspace,
        mounts={},
        limits=judging.limits or task.limits,
        owner=owner,
        setting=replace(setting, hosts=task.verifier_reach.hosts),
        users=_users(judging.user),
    )


def _users(*names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name)


async def put(environment: Environment, tree: FileTree, target: str = ".") -> None:
    """Copy files over a folder of the environment, writable; raises `Spoiled` where it can't."""
    if not tree:
        return
    place = f"{INCOMING}/{tree.digest[:16]}"
    await environment.mount(place, tree)
    folder = 'cd "$2" && set -- "$1" "$PWD" && ' + COPY
    await _must(environment, ("sh", "-c", folder, "sh", place, target), PUT_S, "copying files")


async def prepare(environment: Environment, task: Task, step: Step) -> None:
    """Make an environment ready for a step: its files, its set-up, its healthcheck, no tests.

    Raises `MiloError` where any of it fails, `Spoiled` where files or set-up do: that is no fault
    of a harness that has not been there before.
    """
    await environment.clear_logs()
    await environment.mount("/tests", FileTree())
    await put(environment, step.files)
    if SETUP in step.files:
        await _must(environment, ("bash", SETUP), SETUP_S, f"{SETUP} of step {step.name}", task)
    if step.healthcheck is not None:
        await until_healthy(environment, task, step.healthcheck)


async def until_healthy(environment: Environment, task: Task, check: Healthcheck) -> None:
    """Run a healthcheck by the engines' rules until it passes; raises `MiloError` if it doesn't.

    Waits between tries for the interval that the check names, and for nothing else.
    """
    loop = asyncio.get_running_loop()
    begun, failures = loop.time(), 0
    while True:
        starting = loop.time() < begun + check.start_period_s
        command = Command(argv=("sh", "-c", check.command), timeout_s=check.timeout_s, env=task.env)
        ended = await environment.run(command)
        if ended.code == 0 and not ended.limit:
            return
        failures += 0 if starting else 1
        if failures >= check.retries:
            raise MiloError(f"the healthcheck failed {failures} times: {_said(ended)}")
        await asyncio.sleep(check.start_interval_s if starting else check.interval_s)


async def collect(environment: Environment, task: Task) -> tuple[FileTree, FileTree]:
    """What a verifier of its own is given: the logs with what lies in /logs/artifacts, and the
    declared files by their absolute paths. Raises `Spoiled` where they are more than 4 MiB."""
    paths = tuple(p for p in task.judging.artifacts if not f"{p}/".startswith("/logs/artifacts/"))
    if paths:
        argv = ("sh", "-c", COLLECT, "sh", COLLECTED, *paths)
        ended = await _must(environment, argv, PUT_S, "collecting artifacts")
        if int(ended.stdout.strip() or 0) > MAX_COLLECTED_KIB:
            raise Spoiled(f"the artifacts are {ended.stdout.strip()} KiB, more than 4 MiB")
    logs = await environment.logs()
    start = COLLECTED.removeprefix("/logs/")
    published = [p for p in logs if p.startswith("artifacts/") and not p.startswith(f"{start}/")]
    return FileTree({path: logs[path] for path in published}), logs.under(start)


async def _must(
    environment: Environment,
    argv: tuple[str, ...],
    timeout_s: float,
    what: str,
    task: Task | None = None,
) -> Exit:
    env = task.env if task is not None else {}
    ended = await environment.run(Command(argv=argv, timeout_s=timeout_s, env=env))
    if ended.code != 0 or ended.limit:
        # A slow machine is nobody's work.
        raise (MiloError if ended.limit == "time" else Spoiled)(f"{what} failed: {_said(ended)}")
    return ended


def _said(ended: Exit) -> str:
    limit = f" at its {ended.limit} limit" if ended.limit else ""
    words = (ended.stderr.strip() or ended.stdout.strip())[-TAIL_CHARS:]
    return f"code {ended.code}{limit} after {ended.seconds:.1f} s: {words}"
