"""The shell that a mutator may use: a command in a sandboxed copy of a tree."""

from __future__ import annotations

from milo.core.ports import Command, EnvironmentSpec, Exit, Sandbox
from milo.core.task import Limits
from milo.core.tree import FileTree


class SandboxShell:
    """Runs a command in a sandboxed copy of a tree, without a network: a mutator's shell."""

    def __init__(self, sandbox: Sandbox, owner: str) -> None:
        self._sandbox = sandbox
        self._owner = owner

    async def __call__(
        self, tree: FileTree, command: str, timeout_s: float
    ) -> tuple[Exit, FileTree]:
        """How it ended, and the tree as it left it."""
        spec = EnvironmentSpec(workspace=tree, mounts={}, limits=Limits(), owner=self._owner)
        environment = await self._sandbox.open(spec)
        try:
            ended = await environment.run(
                Command(argv=("/bin/sh", "-c", command), timeout_s=timeout_s)
            )
            return ended, await environment.workspace()
        finally:
            await environment.close()
