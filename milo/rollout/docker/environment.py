"""One environment: a folder of the host, a container, and the doors that a command may use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from milo.core.errors import MiloError
from milo.core.ports import Command, EnvironmentSpec, Exit
from milo.core.task import WORKSPACE, Network
from milo.core.tree import FileTree
from milo.rollout.commands import HARNESS, PLACES, absolute_argv
from milo.rollout.docker.container import Container, Order
from milo.rollout.docker.disk import Disk, HostDisk
from milo.rollout.docker.doors import Doors
from milo.rollout.docker.host import DockerHost
from milo.rollout.docker.images import COVERED, FoundImage
from milo.rollout.docker.labels import labels
from milo.rollout.docker.layer import LayerDisk
from milo.rollout.docker.leash import PLACE, script_of
from milo.rollout.docker.networks import Networks
from milo.rollout.docker.shape import Shape, create_arguments
from milo.rollout.folder import Folder
from milo.rollout.scratch import TreeShelf, remove_folder
from milo.rollout.system import SYSTEM_PATH

ALWAYS_UNSET = frozenset({"HOSTNAME"})


class DockerEnvironment:
    """Implements `ports.Environment`."""

    def __init__(
        self,
        host: DockerHost,
        shelf: TreeShelf,
        networks: Networks,
        spec: EnvironmentSpec,
        image: FoundImage,
    ) -> None:
        self._host, self._shelf, self._networks = host, shelf, networks
        self._spec, self._image = spec, image
        self._own_image = spec.setting.image is not None
        self.workdir = _workdir(spec, image)
        self._mounts: dict[str, FileTree] = {}
        self._shown: dict[str, Path] = {}
        self._late: dict[str, Path] = {}
        self._container: Container | None = None
        self._network = ""
        self._closed = False
        uid = None if self._own_image else host.uid
        start = FileTree() if self._own_image else spec.workspace
        self._folder = Folder(host.root, spec.owner, start, uid if host.shared else None)
        self._doors = Doors(spec, enters=host.enters)
        self._disk = self._make_disk()

    async def prepare(self) -> None:
        """Show the mounts; an image's own file system needs its container now. Called once."""
        (self._folder.base / "run").mkdir(0o755)
        self._folder.base.chmod(0o711)
        self._open_logs()
        for path, tree in self._spec.mounts.items():
            if self._own_image and path != HARNESS:
                await self._fill(path, tree)
            else:
                self._show(path, tree)
        if self._own_image:
            for path in COVERED:
                await self._fill(path, self._image.holds.get(path, FileTree()))
        if self._spec.limits.network is Network.PUBLIC:
            self._network = await self._networks.make(self._spec.owner)
        if isinstance(self._disk, LayerDisk):
            self._container = await self._make_container()
            self._disk.container = self._container.name

    async def run(self, command: Command) -> Exit:
        """Run to the end or to a limit; when this returns, no process of it is alive.

        Raises `MiloError` where the engine could not start it, or went away.
        """
        if self._container is None:
            self._container = await self._make_container()
        gateway = command.gateway and self._spec.gateway_socket is not None

        @asynccontextmanager
        async def doors(pid: int) -> AsyncIterator[None]:
            async with self._doors.open(pid, self._folder.base / "run", gateway=gateway):
                yield

        order = Order(
            script=self._script(command, gateway=gateway),
            timeout_s=command.timeout_s,
            output_bytes=command.output_bytes,
            doors=doors,
            overfull=self._disk.overfull,
        )
        return await self._container.run(order)

    async def workspace(self) -> FileTree:
        """The workspace's regular files; with an image, those that the task names or that are not
        as the image has them. Raises `HarnessError` where they are too many.
        """
        return await self._disk.workspace()

    async def logs(self) -> FileTree:
        """The regular files below /logs, up to 4 MiB."""
        return await asyncio.to_thread(self._folder.read_logs)

    async def clear_logs(self) -> None:
        """Empty /logs."""
        await asyncio.to_thread(self._folder.clear_logs)
        self._open_logs()

    async def seal(self) -> tuple[str, ...]:
        """Remove (with an image: empty) links that lead out, and special files; their paths."""
        return await self._disk.seal()

    async def mount(self, path: str, tree: FileTree) -> None:
        """Show read-only files at an absolute path from the next command on.

        With an image only where something is mounted already, or in one of `COVERED`; raises
        `MiloError` elsewhere, for the container's own file system must be kept.
        """
        if not self._own_image:
            self._show(path, tree)
            await self._drop_container()
        elif path in self._late:
            await self._fill(path, tree)
        else:
            raise MiloError(f"nothing can be mounted at {path} in a container that was made")

    async def close(self) -> None:
        """Remove everything; safe to call twice. No command may be running."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._drop_container()
            if self._network:
                await self._networks.remove(self._network)
        finally:
            for path in self._shown:
                self._shelf.drop(self._spec.owner, self._mounts[path])
            await asyncio.to_thread(self._folder.close)

    def _make_disk(self) -> Disk:
        storage = self._spec.limits.storage_mb
        if self._own_image:
            kept = frozenset(self._spec.workspace)
            return LayerDisk(self._host.engine, self._folder, self.workdir, storage, kept)
        return HostDisk(self._folder, self.workdir, storage)

    async def _make_container(self) -> Container:
        engine = self._host.engine
        arguments = create_arguments(self._shape(), engine.facts)
        made = await engine.ask(
            engine.api.create_container,
            **arguments,
            use_config_proxy=False,
            undo=lambda made: engine.api.remove_container(made["Id"], v=True, force=True),
        )
        return Container(engine, str(made["Id"]), self._folder.base / "run")

    async def _drop_container(self) -> None:
        if self._container is not None:
            await self._container.remove()
            self._container = None

    def _shape(self) -> Shape:
        own = self._own_image
        binds = self._disk.binds(self._shown)
        binds[PLACE] = (str(self._folder.base / "run"), False)
        binds |= {str(folder): (str(folder), False) for folder in self._spec.folders}
        if own:
            binds |= {path: (str(folder), False) for path, folder in self._late.items()}
        return Shape(
            image=self._image.id,
            labels=labels(self._spec.owner),
            limits=self._spec.limits,
            binds=binds,
            user="" if own else f"{self._host.uid}:{self._host.uid}",
            sealed=not own,
            root_rights=own and self._image.works_as_root,
            network=self._network or "none",
        )

    def _script(self, command: Command, *, gateway: bool) -> str:
        argv = absolute_argv(command, self._mounts)
        return script_of(
            (*self._doors.prefix(gateway=gateway), *argv),
            env={**command.env, **self._fixed(), **self._doors.variables},
            unset=ALWAYS_UNSET if self._own_image else ALWAYS_UNSET | set(self._image.env),
            folder=self.workdir,
        )

    def _fixed(self) -> Mapping[str, str]:
        places = {**PLACES, "MILO_WORKSPACE": self.workdir}
        if self._own_image:
            return places
        path = self._image.env.get("PATH", SYSTEM_PATH)
        return {
            **{"PATH": path, "HOME": "/tmp", "LANG": "C.UTF-8"},
            "PYTHONDONTWRITEBYTECODE": "1",
            **places,
        }

    def _show(self, path: str, tree: FileTree) -> None:
        if path in self._shown:
            self._shelf.drop(self._spec.owner, self._mounts[path])
            del self._shown[path]
        self._shown[path] = self._shelf.take(self._spec.owner, tree)
        self._mounts[path] = tree

    async def _fill(self, path: str, tree: FileTree) -> None:
        """Put a tree into the folder that the container sees at a path."""
        if path not in self._late:
            self._late[path] = self._folder.base / f"late-{len(self._late)}"
            self._late[path].mkdir(0o755)
        await asyncio.to_thread(_replace, self._late[path], tree)
        self._mounts[path] = tree

    def _open_logs(self) -> None:
        """Let an image's own user write the logs, whoever that is."""
        if self._own_image:
            for folder in (self._folder.logs, *self._folder.logs.iterdir()):
                folder.chmod(0o777)


def _workdir(spec: EnvironmentSpec, image: FoundImage) -> str:
    """Where commands start: as the task says, else where the image does."""
    if spec.setting.image is None:
        return spec.setting.workdir or WORKSPACE
    return spec.setting.workdir or image.workdir or "/"


def _replace(folder: Path, tree: FileTree) -> None:
    """Put a tree in the place of whatever a folder holds. The folder itself stays: it is bound."""
    for old in list(folder.iterdir()):
        if old.is_dir() and not old.is_symlink():
            remove_folder(old)
        else:
            old.unlink()
    tree.write_to(folder)
