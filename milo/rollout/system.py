"""What a sandbox shows of this host: the read-only system, a minimal /etc, the Python in it."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from milo.core.tree import FileTree

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
NOBODY = 65534
TOP_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@dataclass(frozen=True, kw_only=True, slots=True)
class Python:
    """The `python3` of a sandbox: its executable, the search path that finds it, and the folder
    to show where it isn't part of the system."""

    executable: str
    path: str
    prefix: Path | None = None


def find_python() -> Python:
    """The system's own python3 where there is one, else the one that runs MILO."""
    found = shutil.which("python3", path=SYSTEM_PATH)
    if found is not None and not Path(found).resolve().is_relative_to("/root"):
        return Python(executable=found, path=SYSTEM_PATH)
    prefix = Path(sys.base_prefix)
    executable = prefix / "bin" / "python3"
    return Python(
        executable=str(executable), path=f"{executable.parent}:{SYSTEM_PATH}", prefix=prefix
    )


def system_arguments(python: Python, hidden: tuple[Path, ...]) -> list[str]:
    """Bubblewrap's arguments for /usr and the folders beside it, with `hidden` ones emptied.

    MILO's own package is hidden: it holds the generators and verifiers of the built-in tasks.
    """
    shown = [Path("/usr")]
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in TOP_FOLDERS:
        top = Path("/") / name
        if top.is_symlink():
            arguments += ["--symlink", os.readlink(top), str(top)]
        elif top.is_dir():
            arguments += ["--ro-bind", str(top), str(top)]
            shown.append(top)
    if python.prefix is not None:
        arguments += ["--ro-bind", str(python.prefix), str(python.prefix)]
        shown.append(python.prefix)
    for folder in hidden:
        if any(folder.resolve().is_relative_to(top) for top in shown):
            arguments += ["--tmpfs", str(folder.resolve())]
    return arguments


def etc_tree(uid: int, gid: int) -> FileTree:
    """What stands as /etc: who we are, and the places where the host's links are shown."""
    users = f"root:x:0:0:root:/root:/bin/sh\nmilo:x:{uid}:{gid}:milo:/tmp:/bin/sh\n"
    return FileTree.of_texts(
        {
            "passwd": users,
            "group": f"root:x:0:\nmilo:x:{gid}:\n",
            "hosts": "127.0.0.1 localhost\n",
            "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
            "ld.so.cache": "",
            "alternatives/README": "",
            "ssl/openssl.cnf": "",
            "ssl/certs/README": "",
        }
    )


def etc_arguments(folder: Path) -> list[str]:
    """Bubblewrap's arguments that show `folder` as /etc, with the host's library cache and what
    openssl reads: it does next to nothing without its configuration."""
    arguments = ["--ro-bind", str(folder), "/etc"]
    for name in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/openssl.cnf", "/etc/ssl/certs"):
        if Path(name).exists():
            arguments += ["--ro-bind", name, name]
    return arguments
