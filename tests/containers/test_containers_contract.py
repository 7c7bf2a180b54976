"""The Docker sandbox keeps the sandbox contract on a real engine, with and without images."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from base_image import BASE

from milo.core.ports import Environment, Sandbox
from milo.core.task import Image, Limits, Setting
from milo.core.tree import FileTree
from milo.testing.sandbox_cases import SMALL, SandboxCases, shell

DOCKERFILE = f"FROM {BASE}\nWORKDIR /workspace\nCOPY files/ /workspace/\n"


def image_with(workspace: Mapping[str, str]) -> Image:
    """An image by its name, or one that is built where files are to lie in its workspace."""
    if not workspace:
        return Image(reference=BASE)
    files = {f"files/{path}": text for path, text in workspace.items()}
    return Image(context=FileTree.of_texts({"Dockerfile": DOCKERFILE, **files}))


class TestDocker(SandboxCases):
    @pytest.fixture(autouse=True)
    def _maker(self, make_docker: Callable[[Path], Sandbox]) -> None:
        self.make = make_docker

    def make_sandbox(self, root: Path) -> Sandbox:
        return self.make(root)


class TestDockerInAnImage(TestDocker):
    """The same cases where the workspace is part of a task's image, which works as root."""

    @asynccontextmanager
    async def opened(
        self,
        sandbox: Sandbox,
        workspace: Mapping[str, str] | None = None,
        limits: Limits = SMALL,
        **more: object,
    ) -> AsyncIterator[Environment]:
        setting = more.pop("setting", Setting())
        assert isinstance(setting, Setting)
        more["setting"] = replace(setting, image=image_with(workspace or {}))
        async with super().opened(sandbox, workspace, limits, **more) as environment:
            yield environment

    async def test_the_system_is_not_writable(self, sandbox: Sandbox) -> None:
        """A task's own image may be changed, this host's system may not."""
        for path in ("/usr/milo-was-here", "/etc/milo-was-here", "/milo-was-here"):
            assert (await self.ran(sandbox, shell(f"echo x > {path}"))).code == 0
            assert not Path(path).exists()

    async def test_temporary_files_do_not_outlive_a_command(self, sandbox: Sandbox) -> None:
        """In an image they do: what is installed must stay. The environment ends them."""
        async with self.opened(sandbox) as environment:
            await environment.run(shell('echo kept > "$HOME/x"'))
            assert (await environment.run(shell('cat "$HOME/x"'))).stdout == "kept\n"
        assert (await self.ran(sandbox, shell('cat "$HOME/x"'))).code != 0

    async def test_logs_are_kept_until_cleared(self, sandbox: Sandbox) -> None:
        """The place of the tests can't be written at all."""
        write = shell('echo 1 > "$MILO_LOGS/verifier/reward.txt"; echo t > "$MILO_TESTS/x"')
        async with self.opened(sandbox) as environment:
            assert (await environment.run(write)).code != 0
            assert sorted(await environment.logs()) == ["verifier/reward.txt"]
            await environment.clear_logs()
            assert len(await environment.logs()) == 0

    async def test_links_and_special_files_are_left_out_and_sealed(self, sandbox: Sandbox) -> None:
        """Links out are let alone where they lead to no secret, by whatever ways."""
        make = "ln -s /tests/expected out; ln -s ../../etc up; ln -s kept near; mkfifo pipe;"
        make += " mkdir d; ln -s d/../../tests trick; echo k > kept; ln -s /tests /opt; "
        make += " ln -s /opt/expected far; mkdir /srv; echo s > /srv/s; ln -s /srv/s honest"
        async with self.opened(sandbox) as environment:
            assert (await environment.run(shell(make))).code == 0
            assert sorted(await environment.workspace()) == ["kept"]
            assert await environment.seal() == ("far", "out", "pipe", "trick")
            left = await environment.run(shell("cat near honest; test -d up && echo up; cat far"))
        assert left.stdout == "k\ns\nup\n"
