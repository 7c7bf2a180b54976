"""One environment: a folder of the host, a container, and the doors that a command may use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from milo.core.errors import MiloError
from milo.core.ports import Command, EnvironmentSpec, Exit
from milo.core.task import WORKSPACE, Network
from milo.core.tree import FileTree
from milo.rollout.commands import HARNESS, PLACES, absolute_argv
from milo.rollout.docker.archive import file_at
from milo.rollout.docker.container import Container, Order
from milo.rollout.docker.disk import Disk, HostDisk
from milo.rollout.docker.doors import Doors
from milo.rollout.docker.host import DockerHost
from milo.rollout.docker.images import COVERED, FoundImage
from milo.rollout.docker.labels import labels
from milo.rollout.docker.layer import LayerDisk
from milo.rollout.docker.leash import PLACE, script_of
from milo.rollout.docker.networks import Networks
from milo.rollout.docker.remains import remove_as_root
from milo.rollout.docker.shape import Shape, create_arguments
from milo.rollout.docker.users import PASSWD, PASSWD_BYTES, Users, as_user
from milo.rollout.folder import Folder
from milo.rollout.scratch import TreeShelf, remove_folder
from milo.rollout.system import SYSTEM_PATH
from milo.rollout.ways import reach_of, variables_of, ways_of

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
        self._many_users = self._own_image and bool(spec.users)
        self._users = Users("")
        uid = None if self._own_image else host.uid
        start = FileTree() if self._own_image else spec.workspace
        self._folder = Folder(host.root, spec.owner, start, uid if host.shared else None)
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
        if any(
            reach.network is Network.PUBLIC for reach in (self._spec.reach, *self._spec.reaches)
        ):
            self._network = await self._networks.make(self._spec.owner)
        if isinstance(self._disk, LayerDisk):
            self._container = await self._make_container()
            await self._disk.settle(self._container.name)
            if self._many_users:
                await self._meet_users(self._container.name)

    async def run(self, command: Command) -> Exit:
        """Run to the end or to a limit; when this returns, no process of it is alive.

        Raises `MiloError` where the engine could not start it, or went away.
        """
        if self._container is None:
            self._container = await self._make_container()
        self._folder.unlock()
        public = reach_of(self._spec, command).network is Network.PUBLIC
        doors = Doors(
            ways_of(self._spec, command),
            self._folder.base / "run",
            enters=self._host.enters,
            shut=bool(self._network) and not public,
        )
        order = Order(
            script=self._script(command, doors.prefix),
            timeout_s=command.timeout_s,
            output_bytes=command.output_bytes,
            doors=doors.open,
            overfull=self._disk.overfull,
        )
        try:
            return await self._container.run(order)
        except OSError as error:
            raise MiloError(f"a command could not be run: {error}") from error

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
        if self._folder.base.exists():
            place, owner = self._folder.base, self._spec.owner
            await remove_as_root(self._host.engine, self._host.base.id, place, owner)

    def _make_disk(self) -> Disk:
        storage = self._spec.limits.storage_mb
        if self._own_image:
            return LayerDisk(
                self._host.engine,
                self._folder,
                self.workdir,
                storage,
                frozenset(self._spec.workspace),
                self._image.volumes,
            )
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
        as_root = self._image.works_as_root or self._many_users
        user = f"{self._host.uid}:{self._host.uid}"
        if own:
            user = "0:0" if self._many_users else ""
        return Shape(
            image=self._image.id,
            labels=labels(self._spec.owner),
            limits=self._spec.limits,
            binds=binds,
            user=user,
            sealed=not own,
            root_rights=own and as_root,
            network=self._network or "none",
            volumes=tuple(place for place in self._image.volumes if place not in binds),
        )

    def _script(self, command: Command, prefix: tuple[str, ...]) -> str:
        become: Callable[[list[str]], list[str]] = list
        if self._many_users:
            name = self._users.name(command.user or self._image.user)
            become = partial(as_user, name, env=self._image.env)
        return script_of(
            (*prefix, *absolute_argv(command, self._mounts)),
            env={**command.env, **self._fixed(), **variables_of(self._spec, command)},
            unset=ALWAYS_UNSET if self._own_image else ALWAYS_UNSET | set(self._image.env),
            folder=self.workdir,
            become=become,
        )

    async def _meet_users(self, container: str) -> None:
        """Learn the image's users; raises `TaskError` where one that is needed isn't there."""
        api = self._host.engine.api
        passwd = await self._host.engine.ask(file_at, api, container, PASSWD, PASSWD_BYTES)
        self._users = Users(passwd.data.decode(errors="replace") if passwd is not None else "")
        for user in self._spec.users:
            self._users.name(user)

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
