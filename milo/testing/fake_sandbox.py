"""A sandbox without processes: commands are Python functions on a workspace in memory.

For tests of what stands above a sandbox. A play is called for every command and says how it
ended; it may change `workspace` and `log_files` of the environment it is given.
"""

from __future__ import annotations

from collections.abc import Callable

from milo.core.ports import Command, EnvironmentSpec, Exit
from milo.core.tree import FileTree

Play = Callable[["FakeEnvironment", Command], Exit]


class FakeEnvironment:
    """Implements `ports.Environment`; remembers its commands and mounts."""

    def __init__(self, spec: EnvironmentSpec, play: Play) -> None:
        self.spec = spec
        self.files = spec.workspace
        self.log_files: dict[str, str] = {}
        self.traps: tuple[str, ...] = ()
        self.mounts = dict(spec.mounts)
        self.commands: list[Command] = []
        self.closed = 0
        self._play = play

    async def run(self, command: Command) -> Exit:
        """What the play says."""
        self.commands.append(command)
        return self._play(self, command)

    async def workspace(self) -> FileTree:
        """The files as the play left them."""
        return self.files

    async def logs(self) -> FileTree:
        """The logs as the play left them."""
        return FileTree.of_texts(self.log_files)

    async def clear_logs(self) -> None:
        """Forget the logs."""
        self.log_files.clear()

    async def seal(self) -> tuple[str, ...]:
        """The traps that the play set."""
        traps, self.traps = self.traps, ()
        return traps

    async def mount(self, path: str, tree: FileTree) -> None:
        """Remember the tree."""
        self.mounts[path] = tree

    async def close(self) -> None:
        """Count."""
        self.closed += 1


class FakeSandbox:
    """Implements `ports.Sandbox` with one play for all environments."""

    description = "fake sandbox"

    def __init__(
        self, play: Play, capabilities: frozenset[str] = frozenset({"isolation", "no-network"})
    ) -> None:
        self.capabilities = capabilities
        self.opened: list[FakeEnvironment] = []
        self._play = play

    async def open(self, spec: EnvironmentSpec) -> FakeEnvironment:
        """A new environment in memory."""
        environment = FakeEnvironment(spec, self._play)
        self.opened.append(environment)
        return environment

    async def reap(self, owner: str) -> int:
        """Nothing is ever left."""
        return 0
