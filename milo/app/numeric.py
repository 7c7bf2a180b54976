"""numpy and scipy in a sandbox: MILO's own copies, shown read-only to tasks that need them.

A sandbox runs the system's python3, which usually has neither. Where that Python is of the same
version as MILO's, MILO's packages work in it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from milo.core.ports import Command, Environment, EnvironmentSpec, Exit, Sandbox
from milo.core.task import Task
from milo.core.tree import FileTree
from milo.rollout.system import find_python

CAPABILITY = "numpy"
PACKAGES = ("numpy", "scipy")
READ_AND_ENTER = 0o005


def equipped(sandbox: Sandbox, tasks: Iterable[Task]) -> Sandbox:
    """The sandbox, with numpy in it where a task needs that and this machine can show it."""
    wanted = any(CAPABILITY in task.needs for task in tasks)
    if not wanted or CAPABILITY in sandbox.capabilities:
        return sandbox
    folders = numeric_folders()
    return NumericSandbox(sandbox, folders) if folders else sandbox


def numeric_folders() -> tuple[Path, ...]:
    """The package folders to show; none where the sandbox's Python couldn't use them."""
    version = f"python3.{sys.version_info.minor}"
    if Path(find_python().executable).resolve().name != version:
        return ()
    folders: list[Path] = []
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            return ()
        package = Path(next(iter(spec.submodule_search_locations)))
        libraries = package.with_name(f"{name}.libs")
        folders += [package, *([libraries] if libraries.is_dir() else [])]
    shown = len({folder.parent for folder in folders}) == 1 and _open_to_others(folders[0])
    return tuple(folders) if shown else ()


def _open_to_others(folder: Path) -> bool:
    """Whether a sandbox's user may reach the folder: as root we run commands as nobody."""
    if os.geteuid() != 0:
        return True
    return all(
        p.stat().st_mode & READ_AND_ENTER == READ_AND_ENTER for p in (folder, *folder.parents)
    )


class NumericSandbox:
    """Implements `ports.Sandbox` around another: its environments can import numpy and scipy."""

    def __init__(self, inner: Sandbox, folders: tuple[Path, ...]) -> None:
        self._inner = inner
        self._folders = folders

    @property
    def capabilities(self) -> frozenset[str]:
        """Those of the inner sandbox, and numpy."""
        return self._inner.capabilities | {CAPABILITY}

    @property
    def description(self) -> str:
        """One line."""
        return f"{self._inner.description}, with numpy and scipy"

    async def open(self, spec: EnvironmentSpec) -> Environment:
        """A fresh environment that shows the packages."""
        shown = replace(spec, folders=(*spec.folders, *self._folders))
        return NumericEnvironment(await self._inner.open(shown), self._folders[0].parent)

    async def reap(self, owner: str) -> int:
        """Remove what a dead owner left."""
        return await self._inner.reap(owner)


class NumericEnvironment:
    """Implements `ports.Environment` around another: commands find the packages."""

    def __init__(self, inner: Environment, place: Path) -> None:
        self._inner = inner
        self._env: Mapping[str, str] = {"PYTHONPATH": str(place), "OPENBLAS_NUM_THREADS": "1"}

    async def run(self, command: Command) -> Exit:
        """Run with the packages on Python's path."""
        return await self._inner.run(replace(command, env={**command.env, **self._env}))

    async def workspace(self) -> FileTree:
        """The workspace."""
        return await self._inner.workspace()

    async def logs(self) -> FileTree:
        """The logs."""
        return await self._inner.logs()

    async def clear_logs(self) -> None:
        """Empty the logs."""
        await self._inner.clear_logs()

    async def seal(self) -> tuple[str, ...]:
        """Remove what leads out of the workspace."""
        return await self._inner.seal()

    async def mount(self, path: str, tree: FileTree) -> None:
        """Show files."""
        await self._inner.mount(path, tree)

    async def close(self) -> None:
        """Remove everything."""
        await self._inner.close()
