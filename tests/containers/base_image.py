"""A base image for tests, made from this machine's own files: no registry is asked for one.

Holds busybox (linked statically), bash and the system's python3 with its standard library.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

BASE = "milo/base:test"
PATHS = "/usr/bin:/bin"
LEFT_OUT = ("__pycache__", "test", "idlelib", "tkinter", "ensurepip", "lib2to3", "pydoc_data")
OWN = ("busybox", "bash", "python3")
PASSWD = "root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000::/workspace:/bin/sh\n"
GROUP = "root:x:0:\nagent:x:1000:\n"


def missing_tools() -> str:
    """What this machine lacks for the image, in words; "" for nothing."""
    missing = [name for name in OWN if shutil.which(name, path=PATHS) is None]
    return f"{', '.join(missing)} missing (apt-get install busybox-static)" if missing else ""


def make_base_image(
    api: Any, name: str, libraries: tuple[str, ...] = (), *, python: bool = True
) -> str:
    """Import the image under a name, once, with more shared libraries of the system; the name."""
    if not api.images(name=name):
        repository, _, tag = name.partition(":")
        changes = ["ENV PATH=/usr/bin:/bin", 'CMD ["/bin/sh"]']
        data = root_tar(libraries, python=python)
        api.import_image_from_data(data, repository=repository, tag=tag, changes=changes)
    return name


def root_tar(libraries: tuple[str, ...] = (), *, python: bool = True) -> bytes:
    """The image's file system."""
    interpreter = Path(os.path.realpath(str(shutil.which("python3", path=PATHS))))
    library = Path("/usr/lib") / interpreter.name
    files = {"usr/bin/busybox": "/bin/busybox", "usr/bin/bash": "/bin/bash"}
    programs = [Path("/bin/bash")]
    if python:
        files[f"usr/bin/{interpreter.name}"] = str(interpreter)
        programs += [interpreter, *sorted((library / "lib-dynload").glob("*.so"))]
    for path in programs:
        files |= {f"usr{_merged(lib)}": lib for lib in _libraries(path)}
    for name in libraries:
        lib = next(path for path in Path("/usr/lib").glob(f"*-linux-gnu/{name}"))
        files |= {str(lib).removeprefix("/"): str(lib)}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        _skeleton(tar, interpreter.name if python else "")
        for place, source in files.items():
            tar.add(os.path.realpath(source), arcname=place)
        if python:
            tar.add(library, arcname=f"usr/lib/{interpreter.name}", filter=_wanted)
    return buffer.getvalue()


def _skeleton(tar: tarfile.TarFile, python: str) -> None:
    for name, mode in [("usr/bin", 0o755), ("tmp", 0o1777), ("root", 0o700), ("workspace", 0o755)]:
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        tar.addfile(entry)
    listing = subprocess.run(
        ["busybox", "--list"], check=True, capture_output=True, text=True
    ).stdout
    links = {f"usr/bin/{a}": "busybox" for a in listing.split() if a not in (*OWN, "python")}
    links |= {"usr/bin/python3": python} if python else {}
    links |= {"bin": "usr/bin", "sbin": "usr/bin"}
    links |= {"lib": "usr/lib", "lib64": "usr/lib64"}
    for name, target in links.items():
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = tarfile.SYMTYPE, target
        tar.addfile(entry)
    for name, text in (("etc/passwd", PASSWD), ("etc/group", GROUP)):
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(text), 0o644
        tar.addfile(entry, io.BytesIO(text.encode()))


def _libraries(path: Path) -> set[str]:
    done = subprocess.run(["ldd", str(path)], check=False, capture_output=True, text=True)
    return set(re.findall(r"(/\S+\.so\S*)", done.stdout))


def _merged(library: str) -> str:
    """Where a library lies once /lib is a link to /usr/lib."""
    return library.removeprefix("/usr")


def _wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = entry.name.split("/")
    drop = not set(LEFT_OUT).isdisjoint(parts) or any(p.startswith("config-") for p in parts)
    return None if drop else entry
