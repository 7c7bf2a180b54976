"""Coding agents on this machine: which there are, how one is brought, whether a pool has its own.

Each lies in a folder of its own below that of all installed packages, under its name.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from milo.agents.cli.description import PEERS as PEER_FOLDER
from milo.agents.cli.description import Description, built_in, load
from milo.agents.peer import PEERS
from milo.agents.pool import AGENTS, is_described
from milo.app import packages
from milo.app.packages import STAMP, programs_folder, stamped
from milo.core.errors import ConfigError
from milo.core.packages import Packages

NODE = "node@22"
"""Brought along where an agent asks for a newer Node than there is."""


def install(names: Sequence[str]) -> None:
    """Install agents by name or description file; raises `MiloError` where a command fails.

    One that is there already, in the version that its description names, is left as it is.
    """
    for name in names:
        about = load(name)
        wanted, folder = needs(about, node_version()), programs_folder() / about.place
        if not wanted:
            raise ConfigError(f"agent {about.name}", "packages to install", about.install.note)
        if stamped(folder / STAMP) == wanted:
            print(f"{about.name} is installed in {folder}", flush=True)
        else:
            packages.install(wanted, folder, about.name)


def needs(about: Description, node: int) -> Packages:
    """The packages that hold an agent's program, on a machine with this major version of Node (0
    for none)."""
    npm, pip = about.install.npm, about.install.pip
    own = (NODE,) if npm and node < about.install.node else ()
    return Packages(pip=tuple(sorted(pip)), npm=tuple(sorted((*npm, *own))))


def node_version() -> int:
    """The major version of this machine's Node; 0 where there is none."""
    try:
        done = subprocess.run(
            ("node", "--version"), stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError:
        return 0
    found = re.match(rb"v(\d+)", done.stdout)
    return int(found.group(1)) if found else 0


def installed(about: Description) -> bool:
    """Whether an agent's program is there to be run, all of it."""
    if about.folders:
        return all(Path(folder).is_dir() for folder in about.folders)
    return stamped(programs_folder() / about.place / STAMP) is not None


def check_agents(pool: Iterable[str]) -> None:
    """Refuse a pool with a coding agent that isn't installed, before anything is spent."""
    for entry in pool:
        kind = entry.partition(":")[0]
        if kind not in (*AGENTS, *PEERS) and not is_described(kind):
            continue
        about = load(kind)
        if not installed(about):
            what = "peers" if kind in PEERS else "mutators"
            how = about.install.note or f"milo {what} install {kind}"
            place = programs_folder() / about.place
            raise ConfigError(f"mutator {entry!r}", f"it installed ({how})", f"no {place}")


def peers_text() -> str:
    """What `milo peers list` prints."""
    return _listed(built_in(PEER_FOLDER))


def agents_text() -> str:
    """What `milo mutators list` prints."""
    return _listed(built_in())


def _listed(names: Sequence[str]) -> str:
    rows = []
    for name in names:
        about = load(name)
        state = "installed" if installed(about) else "not installed"
        tested = f"tested with {about.tested}" if about.tested else "untested"
        rows.append(f"{name:16} {about.title}: {state}, {tested}")
    return "\n".join([*rows, f"They are installed below {programs_folder()}."])
