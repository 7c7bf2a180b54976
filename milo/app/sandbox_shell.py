"""The shell that a mutator may use: a command in a sandboxed copy of a tree."""

from __future__ import annotations

from milo.core.errors import MiloError
from milo.core.harness import Harness
from milo.core.ports import Command, EnvironmentSpec, Exit, FindPackages, Sandbox
from milo.core.task import Limits, Reach, Setting
from milo.core.tree import FileTree
from milo.rollout.equipment import Equipment, nothing_installed


class SandboxShell:
    """Runs a command in a sandboxed copy of a tree, with no network but `reach`: a mutator's shell.

    Packages that the tree names as a harness are shown, where `find` knows them.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        owner: str,
        find: FindPackages = nothing_installed,
        reach: Reach | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._owner = owner
        self._find = find
        self._reach = reach or Reach()

    async def __call__(
        self, tree: FileTree, command: str, timeout_s: float
    ) -> tuple[Exit, FileTree]:
        """How it ended, and the tree as it left it."""
        spec = EnvironmentSpec(
            workspace=tree,
            mounts={},
            limits=Limits(network=self._reach.network),
            setting=Setting(hosts=self._reach.hosts),
            owner=self._owner,
        )
        equipment = self._equipment(tree)
        environment = await self._sandbox.open(equipment.shown(spec))
        try:
            asked = Command(argv=("/bin/sh", "-c", command), timeout_s=timeout_s)
            ended = await environment.run(equipment.started(asked))
            return ended, await environment.workspace()
        finally:
            await environment.close()

    def _equipment(self, tree: FileTree) -> Equipment:
        """None for a tree that is no harness yet, or whose packages aren't here: a shell may look
        at it all the same."""
        try:
            return Equipment.of(Harness.from_tree(tree).manifest, self._find)
        except MiloError:
            return Equipment()
