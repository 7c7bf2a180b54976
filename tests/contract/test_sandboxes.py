"""The local sandboxes keep the sandbox contract, as far as this host lets them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from milo.core.ports import Sandbox
from milo.rollout.bubblewrap import BubblewrapHost, BubblewrapSandbox
from milo.rollout.local import choose, probe
from milo.testing.sandbox_cases import SandboxCases, let_others_pass


def bubblewrap_host(root: Path) -> BubblewrapHost:
    """How bubblewrap works here; skips with the reason where it doesn't."""
    host = probe(root, ())
    if not isinstance(host, BubblewrapHost):
        pytest.skip(host)
    return host


class TestBubblewrap(SandboxCases):
    def make_sandbox(self, root: Path) -> Sandbox:
        return BubblewrapSandbox(bubblewrap_host(root))


class TestBubblewrapWithoutRootsRights(SandboxCases):
    """As an ordinary user has it: no control groups, a launcher inside forwards to the model."""

    def make_sandbox(self, root: Path) -> Sandbox:
        return BubblewrapSandbox(replace(bubblewrap_host(root), cgroups=None, enters=False))


class TestPlain(SandboxCases):
    def make_sandbox(self, root: Path) -> Sandbox:
        return choose("plain", root=root)


HOST = """
import asyncio, sys
from pathlib import Path
from milo.core.ports import Command, EnvironmentSpec
from milo.core.task import Limits
from milo.core.tree import FileTree
from milo.rollout.local import choose

async def main():
    sandbox = choose("bubblewrap", root=Path(sys.argv[1]))
    spec = EnvironmentSpec(workspace=FileTree(), mounts={}, limits=Limits(), owner="killed")
    environment = await sandbox.open(spec)
    code = "import time\\nfor n in range(999):\\n time.sleep(.02); open('tick', 'w').write(str(n))"
    await environment.run(Command(argv=("setsid", "python3", "-c", code), timeout_s=60))

asyncio.run(main())
"""


async def test_nothing_runs_on_after_its_host_is_killed_and_the_rest_is_reaped(
    tmp_path: Path,
) -> None:
    """A driver that dies of kill -9 must not leave harnesses running or folders behind."""
    let_others_pass(tmp_path)
    sandbox = BubblewrapSandbox(bubblewrap_host(tmp_path))
    host = await asyncio.create_subprocess_exec(sys.executable, "-c", HOST, str(tmp_path))
    ticks: list[Path] = []
    while not ticks:
        await asyncio.sleep(0.05)
        ticks = list(tmp_path.glob("milo-killed.*/workspace/tick"))
    os.kill(host.pid, signal.SIGKILL)
    await host.wait()
    await asyncio.sleep(0.2)
    before = ticks[0].read_text()
    await asyncio.sleep(0.3)
    assert ticks[0].read_text() == before
    assert await sandbox.reap("killed") >= 1
    assert await sandbox.reap("killed") == 0
    assert list(tmp_path.iterdir()) == []


BACKGROUND = """
import asyncio, sys
from pathlib import Path
from milo.core.ports import Command, EnvironmentSpec
from milo.core.task import Limits
from milo.core.tree import FileTree
from milo.rollout.local import choose

async def main():
    sandbox = choose(sys.argv[1], root=Path(sys.argv[2]))
    spec = EnvironmentSpec(workspace=FileTree(), mounts={}, limits=Limits(), owner="background")
    environment = await sandbox.open(spec)
    command = Command(argv=("grep", "-E", "SigBlk|SigIgn", "/proc/self/status"), timeout_s=60)
    print((await environment.run(command)).stdout)
    await environment.close()

asyncio.run(main())
"""
AS_A_JOB = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""


@pytest.mark.parametrize("kind", ["bubblewrap", "plain"])
async def test_a_command_of_a_background_job_neither_ignores_nor_blocks_signals(
    kind: str, tmp_path: Path
) -> None:
    """Shells start background jobs with SIGINT ignored; a harness's own time limits may use it."""
    let_others_pass(tmp_path)
    if kind == "bubblewrap":
        bubblewrap_host(tmp_path)
    words = (sys.executable, "-c", AS_A_JOB, BACKGROUND, kind, str(tmp_path))
    host = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    said = (await host.communicate())[0].decode()
    masks = {line.split(":")[0]: int(line.split()[1], 16) for line in said.splitlines() if line}
    ours = sum(1 << (n - 1) for n in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM))
    assert set(masks) == {"SigBlk", "SigIgn"}
    assert not (masks["SigBlk"] | masks["SigIgn"]) & ours
