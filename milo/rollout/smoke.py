"""The smoke test of a harness: its setup and smoke commands in an empty environment, no model.

A harness without a smoke command gets a start check: its Python files compile, and its entry can
be started without dying of a missing file or module. Every command of a smoke test finds
``MILO_SMOKE=1``, an empty instruction, and a model's address at which nobody answers.
"""

from __future__ import annotations

import re

from milo.core.errors import MiloError, SandboxLost
from milo.core.harness import Harness
from milo.core.ports import Command, Environment, EnvironmentSpec, Exit, FindPackages, Sandbox
from milo.core.task import Limits
from milo.core.tree import FileTree
from milo.rollout.equipment import Equipment, nothing_installed

SMOKE_S = 20.0
EQUIPPED_SMOKE_S = 180.0
"""Packages of hundreds of megabytes load in seconds, but in minutes where every slot is busy."""
START_S = 5.0
TAIL_CHARS = 1500
CANNOT_START = (126, 127)
BROKEN = re.compile(
    r"^(SyntaxError|IndentationError|TabError|ImportError|ModuleNotFoundError|NameError)\b"
    r"|^bwrap: execvp|can't open file",
    re.MULTILINE,
)
COMPILE = "import sys\nfor p in sys.argv[1:]: compile(open(p, 'rb').read(), p, 'exec')\n"


async def smoke(
    sandbox: Sandbox,
    harness: Harness,
    owner: str,
    now: float,
    *,
    find: FindPackages = nothing_installed,
) -> str:
    """ "" if the harness can be started, else the error, with the end of what it printed.

    `now` is the time in seconds since the epoch. Raises `SandboxLost` where the host can't run any.
    """
    spec = EnvironmentSpec(
        workspace=FileTree(),
        mounts={"/harness": harness.tree, "/task": FileTree.of_texts({"instruction.md": ""})},
        limits=Limits(),
        owner=owner,
    )
    try:
        equipment = Equipment.of(harness.manifest, find)
        environment = await sandbox.open(equipment.shown(spec))
        try:
            return await _checks(environment, harness, equipment, now)
        finally:
            await environment.close()
    except SandboxLost:
        raise
    except MiloError as error:
        return f"the smoke test could not be run: {error}"


async def _checks(
    environment: Environment, harness: Harness, equipment: Equipment, now: float
) -> str:
    manifest = harness.manifest
    timeout_s = EQUIPPED_SMOKE_S if manifest.packages else SMOKE_S
    for name, argv in (("setup", manifest.setup), ("smoke", manifest.smoke)):
        if argv:
            ended = await environment.run(equipment.started(_command(argv, timeout_s, now)))
            if ended.code != 0 or ended.limit:
                return _said(f"the {name} command", ended)
    return "" if manifest.smoke else await _start_check(environment, harness, equipment, now)


async def _start_check(
    environment: Environment, harness: Harness, equipment: Equipment, now: float
) -> str:
    sources = tuple(f"/harness/{path}" for path in harness.tree if path.endswith(".py"))
    if sources:
        argv = ("python3", "-I", "-S", "-c", COMPILE, *sources)
        ended = await environment.run(_command(argv, SMOKE_S, now))
        if ended.code != 0:
            return _said("compiling the harness", ended)
    entry = equipment.started(_command(harness.manifest.entry, START_S, now))
    ended = await environment.run(entry)
    # Without a task and a model it may well fail later on: only a false start counts.
    if ended.code in CANNOT_START or (ended.code != 0 and BROKEN.search(ended.stderr)):
        return _said("starting the harness", ended)
    return ""


def _command(argv: tuple[str, ...], timeout_s: float, now: float) -> Command:
    env = {
        "MILO_TASK": "/task/instruction.md",
        "MILO_SMOKE": "1",
        "MILO_MODEL": "none",
        "MILO_DEADLINE": f"{now + timeout_s:.3f}",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",  # the discard port: nobody answers
        "OPENAI_API_KEY": "none",
    }
    return Command(argv=argv, timeout_s=timeout_s, env=env)


def _said(what: str, ended: Exit) -> str:
    limit = f" at its {ended.limit} limit" if ended.limit else ""
    words = (ended.stderr.strip() or ended.stdout.strip())[-TAIL_CHARS:]
    return f"{what} ended with code {ended.code}{limit} after {ended.seconds:.1f} s: {words}"
