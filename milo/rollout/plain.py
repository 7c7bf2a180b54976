"""The weaker sandbox for hosts without namespaces: a private folder and resource limits.

It keeps honest commands apart and ends them all, but hides neither the host's files nor its
network, and a command that sheds its environment escapes the clean-up. It says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from milo.core.errors import MiloError
from milo.core.ports import Command, EnvironmentSpec, Exit
from milo.core.tree import FileTree
from milo.rollout.commands import LOGS, PLACES, TESTS, WORKSPACE, absolute_argv, limited
from milo.rollout.folder import Folder
from milo.rollout.forward import Relay
from milo.rollout.process import Child
from milo.rollout.scratch import is_left, reap_folders, remove_folder
from milo.rollout.system import Python
from milo.rollout.watch import until_end

END_S = 5.0
DRAIN_S = 1.0
MARK = "MILO_OWNER"
SWEEPS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainHost:
    """How commands are started on this host; `prefix` lowers the user where we are root.

    `reason` says why nothing stronger is used.
    """

    prefix: tuple[str, ...]
    python: Python
    uid: int | None
    root: Path
    reason: str


class PlainSandbox:
    """Implements `ports.Sandbox`. Any number of environments at once on one event loop."""

    def __init__(self, host: PlainHost) -> None:
        self._host = host

    @property
    def capabilities(self) -> frozenset[str]:
        """What it enforces: neither isolation nor a limit on processes."""
        return frozenset({"memory", "file-size", "storage", "public-network"})

    @property
    def description(self) -> str:
        """One line, with the warning."""
        return (
            "plain sandbox (WEAK: harnesses can read this machine's files and use its network; "
            f"{self._host.reason})"
        )

    async def open(self, spec: EnvironmentSpec) -> PlainEnvironment:
        """A fresh environment; raises `MiloError` where the host has no room."""
        try:
            environment = PlainEnvironment(self._host, spec)
            for path, tree in spec.mounts.items():
                await environment.mount(path, tree)
        except OSError as error:
            raise MiloError(f"no environment could be made: {error}") from error
        return environment

    async def reap(self, owner: str) -> int:
        """Kill and remove what a dead owner left."""
        killed = await asyncio.to_thread(kill_marked, owner, "")
        return killed + await asyncio.to_thread(reap_folders, self._host.root, owner)


class PlainEnvironment:
    """Implements `ports.Environment`."""

    def __init__(self, host: PlainHost, spec: EnvironmentSpec) -> None:
        self._host = host
        self._spec = spec
        self._mounts: dict[str, FileTree] = {}
        self._relay: Relay | None = None
        self._address = ""
        self._folder = Folder(host.root, spec.owner, spec.workspace, host.uid)
        self._base = self._folder.base
        self._mark = self._base.name
        (self._base / "tests").symlink_to(self._folder.logs / "tests")

    async def run(self, command: Command) -> Exit:
        """Run to the end or to a limit; when this returns, every marked process is dead."""
        if command.gateway and self._spec.gateway_socket is not None and self._relay is None:
            self._relay = Relay(self._spec.gateway_socket)
            self._address = f"127.0.0.1:{await self._relay.listen_tcp()}"
        self._fresh_tmp()
        self._folder.unlock()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        child = Child(
            self._argv(command),
            env=self._variables(command),
            output_bytes=command.output_bytes,
            cwd=str(self._folder.workspace),
        )
        try:
            limits = self._spec.limits
            limit = await until_end(child, command.timeout_s, self._folder, limits)
            ended = loop.time()
        finally:
            await self._end(child)
        return Exit(
            code=137 if limit else child.code,
            seconds=ended - begun,
            stdout=child.stdout,
            stderr=child.stderr,
            limit=limit,
        )

    async def workspace(self) -> FileTree:
        """The workspace's regular files; raises `HarnessError` where they are too many."""
        limit = self._spec.limits.storage_mb * 1024 * 1024
        return await asyncio.to_thread(self._folder.read_workspace, limit)

    async def logs(self) -> FileTree:
        """The regular files below the logs, up to 4 MiB."""
        return await asyncio.to_thread(self._folder.read_logs)

    async def clear_logs(self) -> None:
        """Empty the logs."""
        await asyncio.to_thread(self._folder.clear_logs)

    async def seal(self) -> tuple[str, ...]:
        """Remove links that lead out of the workspace, and special files; their paths."""
        return await asyncio.to_thread(self._folder.seal)

    async def mount(self, path: str, tree: FileTree) -> None:
        """Write files below the scratch folder; read-only by their modes alone."""
        target = self._real(path)
        if target.is_symlink():
            target.unlink()
        remove_folder(target)
        tree.write_to(target)
        for folder, _, names in os.walk(target):
            for name in names:
                file = Path(folder) / name
                file.chmod(0o555 if file.stat().st_mode & 0o100 else 0o444)
            Path(folder).chmod(0o755 if self._host.uid is not None else 0o555)
        self._mounts[path] = tree

    async def close(self) -> None:
        """Remove everything; safe to call twice."""
        if self._relay is not None:
            await self._relay.close()
            self._relay = None
        await asyncio.to_thread(self._folder.close)

    def _argv(self, command: Command) -> list[str]:
        argv = [self._translated(a) for a in absolute_argv(command, self._mounts)]
        limits = limited(self._spec.limits, address_space=self._spec.limits_addresses)
        return [*self._host.prefix, *limits, *argv]

    def _variables(self, command: Command) -> dict[str, str]:
        given = {name: self._translated(value) for name, value in command.env.items()}
        tmp = str(self._base / "tmp")
        return {
            **given,
            "PATH": self._host.python.path,
            "HOME": tmp,
            "TMPDIR": tmp,
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            **{name: str(self._real(path)) for name, path in PLACES.items()},
            MARK: self._mark,
        }

    def _translated(self, value: str) -> str:
        """A path inside as the host's path, the gateway's address as the one that answers."""
        if self._address:
            value = value.replace(f"127.0.0.1:{self._spec.gateway_port}", self._address)
        for path in (WORKSPACE, LOGS, TESTS, *self._mounts):
            if value == path or value.startswith(f"{path}/"):
                return str(self._real(path)) + value[len(path) :]
        return value

    def _real(self, path: str) -> Path:
        return self._base / path.strip("/")

    def _fresh_tmp(self) -> None:
        tmp = self._base / "tmp"
        if tmp.is_symlink():
            tmp.unlink()
        remove_folder(tmp)
        tmp.mkdir(0o700)
        if self._host.uid is not None:
            os.chown(tmp, self._host.uid, self._host.uid)

    async def _end(self, child: Child) -> None:
        child.kill_group()
        await child.wait(END_S)
        await asyncio.to_thread(kill_marked, self._spec.owner, self._mark)
        # A process that shed its mark may hold the pipes open: it is not waited for.
        await child.drained(DRAIN_S)
        child.close()


def kill_marked(owner: str, mark: str) -> int:
    """SIGKILL every process of this host that carries the mark, or one that the owner left.

    Sweeps until a sweep finds none, since a process may fork while it is looked at.
    """
    killed = 0
    for _ in range(SWEEPS):
        found = [pid for pid, m in _marked().items() if (m == mark if mark else is_left(m, owner))]
        if not found:
            return killed
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def _marked() -> Mapping[int, str]:
    """Living processes by pid with the mark they carry; none where there is no /proc."""
    marks: dict[int, str] = {}
    start = f"{MARK}=milo-".encode()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdigit():
            continue
        try:
            # A zombie has no environment any more, so the dead are not found again.
            data = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if start in data:
            pairs = (pair for pair in data.split(b"\0") if pair.startswith(start))
            marks[int(name)] = next(pairs, start)[len(MARK) + 1 :].decode(errors="replace")
    return marks
