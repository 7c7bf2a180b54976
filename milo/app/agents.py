"""Coding agents on this machine: where they are installed, which there are, how one is brought.

Each lies in a folder of its own, with its own `node_modules` or its own Python environment, so that
no two of them, and none of them and MILO, have to agree on versions.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from platformdirs import site_data_path, user_data_path

from milo.agents.cli.description import Description, built_in, load
from milo.agents.pool import AGENTS, is_described
from milo.core.errors import ConfigError, MiloError
from milo.rollout.system import find_python

FOLDER = "MILO_AGENTS"
"""The environment variable that names another folder for coding agents."""


class Step(NamedTuple):
    """One command of an installation."""

    argv: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.argv)


def programs_folder() -> Path:
    """Where coding agents are installed. Root's sandboxes run as nobody, who can't enter /root."""
    named = os.environ.get(FOLDER, "")
    if named:
        return Path(named).resolve()
    shared = os.geteuid() == 0
    return (site_data_path("milo") if shared else user_data_path("milo")) / "agents"


def steps(about: Description, folder: Path) -> tuple[Step, ...]:
    """The commands that install an agent into its folder."""
    made: list[Step] = []
    if about.install.npm:
        words = ("npm", "install", "--no-save", "--no-fund", "--no-audit")
        made.append(Step((*words, "--prefix", str(folder), *about.install.npm)))
    if about.install.pip:
        made.append(Step((find_python().executable, "-m", "venv", str(folder))))
        made.append(Step((str(folder / "bin" / "pip"), "install", "--quiet", *about.install.pip)))
    return tuple(made)


def install(names: Sequence[str]) -> None:
    """Install agents by name or description file; raises `MiloError` where a command fails."""
    for name in names:
        about = load(name)
        folder = programs_folder() / about.name
        if not steps(about, folder):
            raise ConfigError(f"agent {about.name}", "packages to install", about.install.note)
        folder.mkdir(parents=True, exist_ok=True)
        for step in steps(about, folder):
            print(f"$ {step}", flush=True)
            try:
                done = subprocess.run(step.argv, stdin=subprocess.DEVNULL, check=False)
            except OSError as error:
                raise MiloError(f"installing {about.name}: {error}") from error
            if done.returncode != 0:
                raise MiloError(f"installing {about.name}: {step} ended with {done.returncode}")


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
