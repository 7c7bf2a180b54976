"""What both local sandboxes do alike to a command before it starts."""

from __future__ import annotations

import resource
from collections.abc import Mapping

from milo.core.ports import Command
from milo.core.task import Limits
from milo.core.tree import FileTree

WORKSPACE = "/workspace"
LOGS = "/logs"
TESTS = "/tests"
HARNESS = "/harness"
OPEN_FILES = 1024
MEBIBYTE = 1024 * 1024
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
    bounds = [("-c", resource.RLIMIT_CORE, 0, 1), ("-n", resource.RLIMIT_NOFILE, OPEN_FILES, 1)]
    # POSIX counts files in blocks of 512 bytes, and shells memory in KiB.
    bounds.append(("-f", resource.RLIMIT_FSIZE, limits.storage_mb * MEBIBYTE, 512))
    if address_space:
        bounds.append(("-v", resource.RLIMIT_AS, limits.memory_mb * MEBIBYTE, 1024))
    steps = [f"echo $$ >'{path}'" for path in join_files]
    steps += [
        f"ulimit {flag} {_allowed(kind, value) // unit}" for flag, kind, value, unit in bounds
    ]
    return ("/bin/sh", "-c", " && ".join([*steps, 'exec "$@"']), "sh")


def _allowed(kind: int, value: int) -> int:
    """The value, or the hard limit that we are under ourselves: it can't be raised again."""
    hard = resource.getrlimit(kind)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
