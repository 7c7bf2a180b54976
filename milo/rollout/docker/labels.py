"""Whose a container, network or folder is: the run, and the process that made it.

A run's leftovers carry the run's label, also after it was resumed elsewhere. The process tells a
dead owner from a living one: two hosts of one run may share an engine, and neither may remove
what the other is using.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

RUN = "milo.run"
OWNER = "milo.owner"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
START_FIELD = 19
"""Where a process's start stands in what follows its name in /proc/PID/stat (field 22 of all)."""


def labels(run: str) -> dict[str, str]:
    """What everything that this process makes for a run is labelled with."""
    return {RUN: run, OWNER: process_name(os.getpid())}


def run_filter(run: str) -> dict[str, str]:
    """The engine's filter for what belongs to a run."""
    return {"label": f"{RUN}={run}"}


def is_abandoned(found: Mapping[str, str]) -> bool:
    """Whether who made it is dead, or is this very process (which asks to be rid of it)."""
    owner = found.get(OWNER, "")
    return owner == process_name(os.getpid()) or not is_alive(owner)


def process_name(pid: int) -> str:
    """A process's name that no other process ever has: boot, pid, and start in clock ticks."""
    return f"{_boot()}:{pid}:{_start(pid)}"


def is_alive(owner: str) -> bool:
    """Whether the process of this name runs; a name that can't be read belongs to nobody."""
    pid = owner.split(":")[1] if owner.count(":") == 2 else ""
    return pid.isdigit() and _start(int(pid)) != "" and process_name(int(pid)) == owner


def _boot() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return "?"


def _start(pid: int) -> str:
    """ "" where there is no such process, or it is dead and not yet reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[START_FIELD]
