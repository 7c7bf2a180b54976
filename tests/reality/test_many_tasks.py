"""A suite of thousands of tasks that others wrote loads in seconds, each refusal with its reason.

The tasks of zjysteven/terminal-bench-env are fetched, never committed: ``MILO_HARBOR_DIR`` names
a folder with them (its ``environments_harbor``).
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from milo.suites.folder import scan_folder

FOLDER = "MILO_HARBOR_DIR"


def test_at_least_99_of_100_load_within_30_seconds_and_the_rest_is_named() -> None:
    folder = os.environ.get(FOLDER, "")
    if not folder:
        pytest.skip(f"{FOLDER} names no folder of Harbor tasks")
    begun = time.monotonic()
    scan = scan_folder(Path(folder))
    took = time.monotonic() - begun
    found = len(scan.tasks) + len(scan.broken)
    assert len(scan.tasks) >= 0.99 * found, "\n".join(map(str, scan.broken.values()))
    assert all(name in str(error) for name, error in scan.broken.items())
    assert took < 30
