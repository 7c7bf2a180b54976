"""Coding agents on this machine: which there are, how one is brought, whether a pool has its own.

Each lies in a folder of its own below that of all installed packages, under its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from milo.agents.cli.description import Description, built_in, load
from milo.agents.pool import AGENTS, is_described
from milo.app import packages
from milo.app.packages import programs_folder
from milo.core.errors import ConfigError
from milo.core.packages import Packages


def install(names: Sequence[str]) -> None:
    """Install agents by name or description file; raises `MiloError` where a command fails."""
    for name in names:
        about = load(name)
        wanted = needs(about)
        if not wanted:
            raise ConfigError(f"agent {about.name}", "packages to install", about.install.note)
        packages.install(wanted, programs_folder() / about.name, about.name)


def needs(about: Description) -> Packages:
    """The packages that hold an agent's program."""
    return Packages(pip=tuple(sorted(about.install.pip)), npm=tuple(sorted(about.install.npm)))


def installed(about: Description) -> bool:
    """Whether an agent's program is there to be run."""
    if about.folders:
        return all(Path(folder).is_dir() for folder in about.folders)
    return (programs_folder() / about.name).is_dir()


def check_agents(pool: Iterable[str]) -> None:
    """Refuse a pool with a coding agent that isn't installed, before anything is spent."""
    for entry in pool:
        kind = entry.partition(":")[0]
        if kind not in AGENTS and not is_described(kind):
            continue
        about = load(kind)
        if not installed(about):
            how = about.install.note or f"milo mutators install {kind}"
            place = programs_folder() / about.name
            raise ConfigError(f"mutator {entry!r}", f"it installed ({how})", f"no {place}")


def agents_text() -> str:
    """What `milo mutators list` prints."""
    rows = []
    for name in built_in():
        about = load(name)
        state = "installed" if installed(about) else "not installed"
        tested = f"tested with {about.tested}" if about.tested else "untested"
        rows.append(f"{name:16} {about.title}: {state}, {tested}")
    return "\n".join([*rows, f"They are installed below {programs_folder()}."])
