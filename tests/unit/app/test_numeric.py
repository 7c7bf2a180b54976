"""numpy and scipy in a sandbox: shown where a task needs them and the sandbox's Python fits."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import milo.app.numeric as numeric
from milo.app.numeric import CAPABILITY, NumericSandbox, equipped, numeric_folders
from milo.core.ports import Command, EnvironmentSpec, Exit
from milo.core.task import Limits, Task
from milo.core.tree import FileTree
from milo.rollout.system import Python
from milo.testing.fake_sandbox import FakeEnvironment, FakeSandbox

FOLDERS = (Path("/p/site/numpy"), Path("/p/site/scipy"))


def ended(environment: FakeEnvironment, command: Command) -> Exit:
    return Exit(code=0, seconds=0.1)


def task(*needs: str) -> Task:
    return Task(
        id="t",
        instruction="i",
        family="f",
        workspace=FileTree(),
        tests=FileTree.of_texts({"test.sh": ""}),
        needs=frozenset(needs),
    )


def spec() -> EnvironmentSpec:
    return EnvironmentSpec(
        workspace=FileTree(), mounts={}, limits=Limits(), owner="o", folders=(Path("/own"),)
    )


def test_only_a_sandbox_whose_tasks_need_it_is_equipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numeric, "numeric_folders", lambda: FOLDERS)
    plain = FakeSandbox(ended)
    assert equipped(plain, [task(), task("other")]) is plain
    given = equipped(plain, [task(), task(CAPABILITY)])
    assert given.capabilities == plain.capabilities | {CAPABILITY}
    assert given.description == "fake sandbox, with numpy and scipy"
    able = FakeSandbox(ended, frozenset({CAPABILITY}))
    assert equipped(able, [task(CAPABILITY)]) is able


def test_a_machine_that_can_not_show_them_leaves_the_sandbox_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numeric, "numeric_folders", lambda: ())
    plain = FakeSandbox(ended)
    assert equipped(plain, [task(CAPABILITY)]) is plain


def test_environments_show_the_folders_and_commands_find_the_packages() -> None:
    inner = FakeSandbox(ended)

    async def use() -> None:
        environment = await NumericSandbox(inner, FOLDERS).open(spec())
        await environment.run(Command(argv=("x",), timeout_s=1.0, env={"A": "1", "PYTHONPATH": ""}))
        await environment.mount("/tests", FileTree.of_texts({"a": "b"}))
        assert await environment.workspace() == FileTree()
        await environment.clear_logs()
        assert await environment.logs() == FileTree()
        assert await environment.seal() == ()
        await environment.close()

    asyncio.run(use())
    (opened,) = inner.opened
    assert opened.spec.folders == (Path("/own"), *FOLDERS)
    env = opened.commands[0].env
    assert (env["PYTHONPATH"], env["A"], env["OPENBLAS_NUM_THREADS"]) == ("/p/site", "1", "1")
    assert "/tests" in opened.mounts
    assert opened.closed == 1


def test_reaping_reaches_the_inner_sandbox() -> None:
    class Reaped(FakeSandbox):
        async def reap(self, owner: str) -> int:
            return len(owner)

    assert asyncio.run(NumericSandbox(Reaped(ended), FOLDERS).reap("abc")) == 3


def test_a_python_of_another_version_is_shown_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Python(executable="/usr/bin/python3.9", path="/usr/bin")
    monkeypatch.setattr(numeric, "find_python", lambda: other)
    assert numeric_folders() == ()


def same_python(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"/nowhere/python3.{sys.version_info.minor}"
    monkeypatch.setattr(numeric, "find_python", lambda: Python(executable=name, path="/nowhere"))


def test_a_python_of_the_same_version_is_shown_both_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    same_python(monkeypatch)
    monkeypatch.setattr(numeric, "_open_to_others", lambda folder: True)
    folders = numeric_folders()
    assert {"numpy", "scipy"} <= {folder.name for folder in folders}
    assert all(folder.is_dir() for folder in folders)
    assert len({folder.parent for folder in folders}) == 1


def test_packages_that_nobody_may_read_are_not_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    same_python(monkeypatch)
    monkeypatch.setattr(numeric, "_open_to_others", lambda folder: False)
    assert numeric_folders() == ()


def test_as_root_every_folder_above_must_be_open_to_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    (closed / "numpy").mkdir(parents=True)
    closed.chmod(0o700)
    monkeypatch.setattr(numeric.os, "geteuid", lambda: 0)
    assert not numeric._open_to_others(closed / "numpy")
    assert numeric._open_to_others(Path("/usr"))
    monkeypatch.setattr(numeric.os, "geteuid", lambda: 1000)
    assert numeric._open_to_others(closed / "numpy")


def test_a_missing_package_means_none_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    same_python(monkeypatch)
    monkeypatch.setattr(numeric, "PACKAGES", ("numpy", "no_such_package_here"))
    assert numeric_folders() == ()
