"""Control groups as limits on memory and processes, where this host lets us write them.

Version 1 (a hierarchy per controller) and version 2 (one for all). Groups stand below our own
where the hierarchy allows it, so that limits around us hold for commands as well.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from milo.core.task import Limits
from milo.rollout.scratch import is_left, owner_label

CONTROLLERS = ("memory", "pids")
REMOVE_TRIES, REAP_ROUNDS = 50, 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Cgroup:
    """One environment's group: one folder per hierarchy. Processes join by `join_files`."""

    folders: tuple[Path, ...]

    @property
    def join_files(self) -> tuple[str, ...]:
        """Files into which a process writes its pid to join."""
        return tuple(str(folder / "cgroup.procs") for folder in self.folders)

    def oom_kills(self) -> int:
        """How many processes the memory limit has killed so far."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                try:
                    lines = (folder / name).read_text().splitlines()
                except OSError:
                    continue
                counts = {word: int(count) for word, _, count in (x.partition(" ") for x in lines)}
                # Version 2 counts those that a host without memory killed as well.
                return counts.get("oom_kill", 0) if counts.get("oom", 1) else 0
        return 0

    def remove(self) -> None:
        """Remove the group; its processes are dead, but may be a moment in leaving."""
        for folder in self.folders:
            _remove(folder)


class CgroupHost:
    """Makes groups on this host below `parents`. Stateless, for any number of callers."""

    def __init__(self, parents: Mapping[str, Path], *, unified: bool) -> None:
        self._parents = dict(parents)
        self._unified = unified

    @classmethod
    def detect(cls) -> CgroupHost | None:
        """The host's groups if they can be written, proved by making one; else None."""
        if os.geteuid() != 0:
            return None
        for host in (_version_1(), _version_2()):
            if host is not None and host._works():
                return host
        return None

    def make(self, name: str, limits: Limits) -> Cgroup:
        """A new group with the limits; raises `OSError`."""
        folders = tuple(sorted({parent / name for parent in self._parents.values()}))
        for folder in folders:
            folder.mkdir()
        memory = str(limits.memory_mb * 1024 * 1024)
        if self._unified:
            _write(folders[0] / "memory.max", memory)
            _try_write(folders[0] / "memory.swap.max", "0")
        else:
            _write(self._parents["memory"] / name / "memory.limit_in_bytes", memory)
            _try_write(self._parents["memory"] / name / "memory.memsw.limit_in_bytes", memory)
        _write(self._parents["pids"] / name / "pids.max", str(limits.processes))
        return Cgroup(folders=folders)

    def reap(self, owner: str) -> int:
        """Kill and remove what an owner left, wherever below the hierarchies; how many."""
        found = 0
        for root in {_mount_of(parent) for parent in self._parents.values()}:
            for folder, names, _ in os.walk(root):
                for name in [name for name in names if is_left(name, owner)]:
                    _end(Path(folder) / name)
                    found += 1
        return found

    def _works(self) -> bool:
        try:
            self.make(f"milo-{owner_label('probe')}.{os.getpid()}", Limits()).remove()
        except OSError:
            return False
        return True


def _version_1() -> CgroupHost | None:
    own = _own_paths()
    parents: dict[str, Path] = {}
    for controller in CONTROLLERS:
        mount = Path("/sys/fs/cgroup") / controller
        below = mount / own.get(controller, "").lstrip("/")
        parents[controller] = below if (below / "cgroup.procs").exists() else mount
        if not (parents[controller] / "cgroup.procs").exists():
            return None
    return CgroupHost(parents, unified=False)


def _version_2() -> CgroupHost | None:
    mount = Path("/sys/fs/cgroup")
    own = mount / _own_paths().get("", "").lstrip("/")
    # A group with processes has no limited children, so ours is a sibling of our own group.
    for parent in (own.parent if own != mount else own, mount):
        try:
            given = (parent / "cgroup.subtree_control").read_text().split()
        except OSError:
            continue
        if set(CONTROLLERS) <= set(given):
            return CgroupHost(dict.fromkeys(CONTROLLERS, parent), unified=True)
    return None


def _own_paths() -> dict[str, str]:
    """Our own group per controller; "" is version 2's."""
    paths: dict[str, str] = {}
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return paths
    for line in lines:
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def _mount_of(path: Path) -> Path:
    while not os.path.ismount(path) and path != path.parent:
        path = path.parent
    return path


def _kill_all(folder: Path) -> None:
    try:
        pids = [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return
    for pid in pids:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            continue


def _end(folder: Path) -> None:
    """Kill and remove a group nobody owns any more; on a busy machine its processes take a while
    to leave, and may start others meanwhile."""
    for _ in range(REAP_ROUNDS):
        _kill_all(folder)
        _remove(folder)
        if not folder.exists():
            return


def _remove(folder: Path) -> None:
    """Remove a group; waits up to half a second for its last process to leave."""
    for _ in range(REMOVE_TRIES):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)
        else:
            return


def _write(path: Path, value: str) -> None:
    path.write_text(value)


def _try_write(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except OSError:
        return  # no swap accounting here: nothing to forbid
