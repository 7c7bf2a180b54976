"""What a host that was killed leaves running is ended by the reaper, and nobody else's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from milo.rollout.bubblewrap import end_orphans
from milo.rollout.scratch import owner_label


def sleeper(root: Path, owner: str) -> subprocess.Popen[bytes]:
    """A process that calls itself bwrap and names a scratch folder of the owner."""
    code = "import time; time.sleep(60)"
    folder = f"{root}/milo-{owner_label(owner)}.abc"
    return subprocess.Popen(["bwrap", "-c", code, folder], executable=sys.executable)


def test_only_the_owners_orphans_are_ended(tmp_path: Path) -> None:
    mine, other = sleeper(tmp_path, "run-1"), sleeper(tmp_path, "run-2")
    try:
        assert end_orphans(tmp_path, "run-1") == 1
        assert mine.wait(10) != 0
        assert other.poll() is None
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()
