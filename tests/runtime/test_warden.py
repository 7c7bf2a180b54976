"""A process that is killed with SIGKILL leaves nothing behind once its warden has acted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from milo.rollout.scratch import is_of_owner, scratch_root

pytestmark = pytest.mark.timeout(300)
WARD = """
import subprocess, sys
from milo.app.leftovers import Leftovers, temporary_folder
from milo.core.plan import ClusterPlan
from milo.rollout.scratch import make_folder, scratch_root
from milo.runtime.warden import Warden

owner = sys.argv[1]
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
make_folder(scratch_root(), owner, shared=False)
temporary_folder(owner)
warden = Warden(Leftovers(cluster=ClusterPlan(sandbox="plain"), owner=owner))
print(child.pid, flush=True)
input()
warden.dismiss()
print("dismissed", flush=True)
input()
"""


@pytest.fixture
def owner(tmp_path: Path) -> str:
    """An owner of this test alone."""
    return f"w{tmp_path.name[-8:]}{os.getpid()}"


@pytest.fixture
def ward(owner: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with a warden, two folders and a child in a session of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", WARD, owner],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    yield process
    process.kill()
    process.communicate()


def folders(owner: str, temporary: Path) -> list[Path]:
    """What lies in both places of scratch folders for the owner."""
    return [
        path
        for root in (scratch_root(), temporary)
        for path in root.iterdir()
        if is_of_owner(path.name, owner)
    ]


def runs(process: psutil.Process) -> bool:
    """Whether it lives; one that only waits to be reaped does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def within(seconds: float, done: Callable[[], bool]) -> bool:
    """Whether it comes true in time."""
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.2)
    return done()


def test_after_a_kill_its_children_and_its_folders_are_gone(
    owner: str, ward: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert ward.stdout is not None
    child = psutil.Process(int(ward.stdout.readline()))
    assert len(folders(owner, tmp_path)) == 2
    time.sleep(5)  # until the warden has looked: it does so at its start
    ward.send_signal(signal.SIGKILL)
    ward.wait()
    assert within(240, lambda: not runs(child) and not folders(owner, tmp_path))


def test_a_warden_that_was_dismissed_touches_nothing(
    owner: str, ward: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert ward.stdout is not None and ward.stdin is not None
    child = psutil.Process(int(ward.stdout.readline()))
    ward.stdin.write("\n")
    ward.stdin.flush()
    assert ward.stdout.readline().strip() == "dismissed"
    ward.send_signal(signal.SIGKILL)
    ward.wait()
    time.sleep(2)
    try:
        # Its group may go: another run that starts meanwhile removes what dead runs left there.
        assert runs(child) and any(path.parent == tmp_path for path in folders(owner, tmp_path))
    finally:
        child.kill()
        for path in folders(owner, tmp_path):
            path.rmdir()
