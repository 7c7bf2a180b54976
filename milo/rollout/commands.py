"""What both local sandboxes do alike to a command before it starts."""

from __future__ import annotations

from collections.abc import Mapping

from milo.core.ports import Command
from milo.core.task import Limits
from milo.core.tree import FileTree

WORKSPACE = "/workspace"
LOGS = "/logs"
TESTS = "/tests"
HARNESS = "/harness"
OPEN_FILES = 1024
PLACES = {
    "MILO_WORKSPACE": WORKSPACE,
    "MILO_LOGS": LOGS,
    "MILO_TESTS": TESTS,
    "MILO_HARNESS": HARNESS,
}


def absolute_argv(command: Command, mounts: Mapping[str, FileTree]) -> tuple[str, ...]:
    """The arguments, those that name files of the mounted harness made absolute."""
    tree = mounts.get(HARNESS)
    if tree is None:
        return command.argv
    return tuple(f"{HARNESS}/{a}" if a in tree else a for a in command.argv)


def limited(
    limits: Limits, *, join_files: tuple[str, ...] = (), address_space: bool
) -> tuple[str, ...]:
    """A shell prefix that joins control groups, sets resource limits and becomes the command.

    One cheap process image instead of a tool per limit. `address_space` limits memory per
    process, for hosts without control groups.
    """
    steps = [f"echo $$ >'{path}'" for path in join_files]
    blocks = limits.storage_mb * 1024 * 2  # of 512 bytes, by POSIX
    steps += ["ulimit -c 0", f"ulimit -n {OPEN_FILES}", f"ulimit -f {blocks}"]
    if address_space:
        steps.append(f"ulimit -v {limits.memory_mb * 1024}")
    return ("/bin/sh", "-c", " && ".join([*steps, 'exec "$@"']), "sh")
