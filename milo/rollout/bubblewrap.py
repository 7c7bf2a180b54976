"""The local sandbox on bubblewrap: namespaces of its own for every command.

No network but the gateway, a read-only system, a private workspace, limits on time, memory,
processes, file size and storage. /tmp is new for every command; the workspace and /logs stay
until the environment is closed. When the sandbox's init dies the kernel kills all that is in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from milo.core.errors import MiloError
from milo.core.ports import Command, EnvironmentSpec, Exit
from milo.core.task import Limits
from milo.core.tree import FileTree
from milo.rollout.cgroups import Cgroup, CgroupHost
from milo.rollout.commands import PLACES, TESTS, WORKSPACE, absolute_argv, limited
from milo.rollout.folder import Folder
from milo.rollout.netdoor import NetDoor
from milo.rollout.process import Child
from milo.rollout.scratch import TreeShelf, is_left, reap_folders
from milo.rollout.status import StatusPipe
from milo.rollout.system import Python, etc_arguments, etc_tree, system_arguments
from milo.rollout.watch import until_end
from milo.rollout.ways import Way, launched, variables_of, ways_of

SOCKETS = "/run"
LAUNCHER_FOLDER = "/run/milo"
LAUNCHER_FILE = "launcher.py"
END_S = 5.0
KILLED = 128 + 9
NOT_FOUND = 127
NAMESPACES = ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session")


@dataclass(frozen=True, kw_only=True, slots=True)
class BubblewrapHost:
    """How bubblewrap is started on this host.

    `prefix` is bubblewrap with what must stand before and directly after it; `uid` the user that
    commands run as where it isn't ours; `nproc` whether a process limit counts per sandbox;
    `hidden` folders are shown empty; `root` is where scratch folders lie; `launcher` holds the
    script that opens ways inside where we may not enter a sandbox's network (`enters`).
    """

    prefix: tuple[str, ...]
    python: Python
    hidden: tuple[Path, ...]
    uid: int | None
    own_uid: int
    cgroups: CgroupHost | None
    nproc: bool
    root: Path
    launcher: FileTree
    enters: bool

    @property
    def etc(self) -> FileTree:
        """What stands as /etc."""
        uid = self.own_uid if self.uid is None else self.uid
        return etc_tree(uid, uid)


class BubblewrapSandbox:
    """Implements `ports.Sandbox`. Any number of environments at once on one event loop."""

    def __init__(self, host: BubblewrapHost) -> None:
        self._host = host
        self._shelf = TreeShelf(host.root, shared=host.uid is not None)

    @property
    def capabilities(self) -> frozenset[str]:
        """What it enforces here; `pids` needs control groups or a recent kernel."""
        always = {"isolation", "no-network", "memory", "file-size", "storage", "workdir"}
        always |= {"allowlisted-network"}
        counts = self._host.cgroups is not None or self._host.nproc
        return frozenset(always | ({"pids"} if counts else set()))

    @property
    def description(self) -> str:
        """One line."""
        memory = "control groups" if self._host.cgroups else "limits per process"
        return f"bubblewrap sandbox: no network, read-only system, {memory}"

    async def open(self, spec: EnvironmentSpec) -> BubblewrapEnvironment:
        """A fresh environment; raises `MiloError` where the host has no room or refuses."""
        try:
            environment = BubblewrapEnvironment(self._host, self._shelf, spec)
            try:
                await environment.prepare()
            except BaseException:
                await environment.close()
                raise
        except OSError as error:
            raise MiloError(f"no environment could be made: {error}") from error
        return environment

    async def reap(self, owner: str) -> int:
        """Remove what a dead owner left; most of its processes died with it."""
        groups = self._host.cgroups
        count = await asyncio.to_thread(end_orphans, self._host.root, owner)
        count += await asyncio.to_thread(groups.reap, owner) if groups else 0
        return count + await asyncio.to_thread(reap_folders, self._host.root, owner)


def end_orphans(root: Path, owner: str) -> int:
    """Kill sandboxes of the owner whose starter was killed before it could bind them to itself."""
    mark = re.compile(re.escape(f"{root}/".encode()) + rb"(milo-[^/\0]+)")
    ended = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_bytes()
            folders = {name.decode(errors="replace") for name in mark.findall(command)}
            is_sandbox = command.partition(b"\0")[0].endswith(b"bwrap")
            if is_sandbox and any(is_left(name, owner) for name in folders):
                os.kill(int(folder.name), signal.SIGKILL)
                ended += 1
    return ended


class BubblewrapEnvironment:
    """Implements `ports.Environment`."""

    def __init__(self, host: BubblewrapHost, shelf: TreeShelf, spec: EnvironmentSpec) -> None:
        self._host = host
        self._shelf = shelf
        self._spec = spec
        self._mounts: dict[str, FileTree] = {}
        self._shown: dict[str, Path] = {}
        self._cgroup: Cgroup | None = None
        self._closed = False
        self._workdir = spec.setting.workdir or WORKSPACE
        self._folder = Folder(host.root, spec.owner, spec.workspace, host.uid)

    async def prepare(self) -> None:
        """Show the mounts and make the control group; called once, by the sandbox."""
        for path, tree in {"/etc": self._host.etc, **self._spec.mounts}.items():
            self._show(path, tree)
        if self._host.cgroups is not None:
            self._cgroup = self._host.cgroups.make(self._folder.base.name, self._spec.limits)
        if not self._host.enters:
            self._show(LAUNCHER_FOLDER, self._host.launcher)

    async def run(self, command: Command) -> Exit:
        """Run to the end or to a limit; when this returns, its whole namespace is dead.

        Raises `MiloError` where the sandbox itself could not be started.
        """
        self._folder.unlock()
        ways = ways_of(self._spec, command)
        async with contextlib.AsyncExitStack() as stack:
            for way in ways:
                stack.push_async_callback(way.listener.close)
            if ways and self._host.enters:
                door = NetDoor(ways)
                stack.callback(door.close)
                return await self._run(command, (), door)
            for way in ways:
                # A socket of ours stands in: commands run as another user, theirs may be private.
                place = self._folder.base / way.socket
                await way.listener.listen_unix(place)
                stack.callback(place.unlink, missing_ok=True)
            return await self._run(command, ways, None)

    async def workspace(self) -> FileTree:
        """The workspace's regular files; raises `HarnessError` where they are too many."""
        limit = self._spec.limits.storage_mb * 1024 * 1024
        return await asyncio.to_thread(self._folder.read_workspace, limit)

    async def logs(self) -> FileTree:
        """The regular files below /logs, up to 4 MiB."""
        return await asyncio.to_thread(self._folder.read_logs)

    async def clear_logs(self) -> None:
        """Empty /logs."""
        await asyncio.to_thread(self._folder.clear_logs)

    async def seal(self) -> tuple[str, ...]:
        """Remove links that lead out of the workspace, and special files; their paths."""
        return await asyncio.to_thread(self._folder.seal, self._workdir)

    async def mount(self, path: str, tree: FileTree) -> None:
        """Show read-only files at an absolute path from the next command on."""
        self._show(path, tree)

    async def close(self) -> None:
        """Remove everything; safe to call twice. No command may be running."""
        if self._closed:
            return
        self._closed = True
        for tree in self._mounts.values():
            self._shelf.drop(self._spec.owner, tree)
        await asyncio.to_thread(self._remove)

    async def _run(self, command: Command, ways: tuple[Way, ...], door: NetDoor | None) -> Exit:
        """Run with a door that holds it back, or with ways that the launcher opens inside."""
        status = StatusPipe()
        try:
            child = Child(
                self._argv(command, status, door, ways),
                env={"PATH": self._host.python.path},
                output_bytes=command.output_bytes,
                pass_fds=(status.write_fd, *((door.read_fd,) if door is not None else ())),
            )
        except BaseException:
            status.close()
            raise
        status.handed_over()
        try:
            if door is not None:
                await door.open(status)
            return await self._follow(command, child, status)
        finally:
            await _end(child, status)

    def _remove(self) -> None:
        # Files first: what they hold in memory is charged to the group.
        self._folder.close()
        if self._cgroup is not None:
            self._cgroup.remove()

    def _show(self, path: str, tree: FileTree) -> None:
        if path in self._mounts:
            self._shelf.drop(self._spec.owner, self._mounts.pop(path))
        self._shown[path] = self._shelf.take(self._spec.owner, tree)
        self._mounts[path] = tree

    async def _follow(self, command: Command, child: Child, status: StatusPipe) -> Exit:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        killed_before = self._cgroup.oom_kills() if self._cgroup else 0
        limit = await until_end(child, command.timeout_s, self._folder, self._spec.limits)
        ended = loop.time()
        await _end(child, status)
        if not limit and status.exit_code != 0 and self._cgroup is not None:
            limit = "memory" if self._cgroup.oom_kills() > killed_before else ""
        return Exit(
            code=KILLED if limit else _exit_code(child, status),
            seconds=ended - (status.started_at or begun),
            stdout=child.stdout,
            stderr=child.stderr,
            limit=limit,
        )

    def _argv(
        self, command: Command, status: StatusPipe, door: NetDoor | None, ways: tuple[Way, ...]
    ) -> list[str]:
        host, limits = self._host, self._spec.limits
        join_files = self._cgroup.join_files if self._cgroup else ()
        script = f"{LAUNCHER_FOLDER}/{LAUNCHER_FILE}"
        launcher = launched(ways, script, SOCKETS)
        return [
            *limited(limits, join_files=join_files, address_space=self._limits_addresses),
            *host.prefix,
            *NAMESPACES,
            *("--json-status-fd", str(status.write_fd)),
            *(door.arguments if door is not None else ()),
            *self._file_arguments(limits, ways),
            *self._variables(command),
            *("--cap-drop", "ALL", "--"),
            *self._process_limit(),
            *((self._host.python.executable, *launcher) if ways else ()),
            *absolute_argv(command, self._mounts),
        ]

    def _file_arguments(self, limits: Limits, ways: tuple[Way, ...]) -> list[str]:
        size = str(limits.storage_mb * 1024 * 1024)
        arguments = system_arguments(self._host.python, self._host.hidden)
        arguments += etc_arguments(self._shown["/etc"])
        arguments += ["--proc", "/proc", "--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm"]
        arguments += ["--remount-ro", "/dev", "--size", size, "--tmpfs", "/tmp"]
        arguments += ["--bind", str(self._folder.workspace), self._workdir]
        arguments += ["--bind", str(self._folder.logs), PLACES["MILO_LOGS"]]
        for shared in self._spec.folders:
            arguments += ["--ro-bind", str(shared), str(shared)]
        for path, folder in self._shown.items():
            if path != "/etc":
                arguments += ["--ro-bind", str(folder), path]
        if TESTS not in self._shown:
            arguments += ["--symlink", "logs/tests", TESTS]
        for way in ways:
            arguments += ["--ro-bind", str(self._folder.base / way.socket)]
            arguments += [f"{SOCKETS}/{way.socket}"]
        return [*arguments, "--remount-ro", "/", "--chdir", self._workdir]

    @property
    def _limits_addresses(self) -> bool:
        return self._cgroup is None and self._spec.limits_addresses

    def _variables(self, command: Command) -> list[str]:
        fixed = {
            "PATH": self._host.python.path,
            "HOME": "/tmp",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            **PLACES,
            "MILO_WORKSPACE": self._workdir,
            **variables_of(self._spec, command),
        }
        arguments = ["--clearenv"]
        for name, value in {**command.env, **fixed}.items():
            arguments += ["--setenv", name, value]
        return arguments

    def _process_limit(self) -> tuple[str, ...]:
        """Set inside, where only this sandbox's processes are counted."""
        if self._cgroup is not None or not self._host.nproc:
            return ()
        return ("prlimit", f"--nproc={self._spec.limits.processes}", "--")


def _exit_code(child: Child, status: StatusPipe) -> int:
    """The command's exit code; raises `MiloError` where no command was reached."""
    if status.exit_code is not None:
        return status.exit_code
    if "bwrap: execvp " in child.stderr:
        return NOT_FOUND
    raise MiloError(f"the sandbox did not start: {child.stderr.strip() or child.code}")


async def _end(child: Child, status: StatusPipe) -> None:
    """Kill what is left and wait until the namespace is empty; safe to call twice."""
    if not await child.wait(0):
        child.kill_group()
        if status.init is not None:
            status.init.kill()
        await child.wait(END_S)
    status.read_rest()
    if status.init is not None and status.init.alive:
        # Bubblewrap is dead, so its init is dying; the kernel empties the namespace first.
        status.init.kill()
        if not await status.init.dead(END_S):
            raise MiloError("a sandbox could not be killed")
    await child.drained(END_S)
    child.close()
    status.close()
