"""Nodes that leave and join while a run goes on, and how busy slots are kept: real Ray clusters.

Each in a process of its own, as a user's would be.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from words import milo, serving, words_for, write_suite

pytestmark = pytest.mark.timeout(600)
HERE = Path(__file__).parent
SLOTS = 4


def output(script: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(script), *words],
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_run_goes_on_without_a_removed_node_and_uses_an_added_one(tmp_path: Path) -> None:
    said: dict[str, Any] = json.loads(
        output(HERE / "nodes_run.py", str(tmp_path / "run")).splitlines()[-1]
    )
    assert not said["interrupted"]
    assert said["rounds"] == [6, 6]
    assert (said["invalid"], said["repeated"]) == (0, 0)
    assert len(said["hosts"]) == 3, "two nodes at first, and the one that joined"
    assert all(count > 0 for count in said["hosts"].values())
    assert set(said["slots"]) >= {SLOTS, 2 * SLOTS}, "one host, then two, all with their own slots"


def test_a_node_without_milo_is_named_with_what_it_lacks(tmp_path: Path) -> None:
    """It is whatever node of many was forgotten; a worker's own words would be lost."""
    said = output(HERE / "bare_node_run.py", str(tmp_path)).splitlines()[-1]
    assert re.fullmatch(r"ClusterError node \w{8} at [\d.]+: .*No module named 'milo'", said), said


def test_slots_are_kept_busy(capfd: pytest.CaptureFixture[str]) -> None:
    """A sample of ``scripts/bench scheduling``: bounds with room for a busy machine."""
    said = output(HERE.parent / "benchmarks" / "bench_scheduling.py", "sample")
    with capfd.disabled():
        print(f"\n{said}")


def test_a_plan_that_no_node_can_take_is_refused_at_the_start(tmp_path: Path) -> None:
    """Not waited on: a wrong resource name or a GPU that nobody has is said within seconds."""
    folder = write_suite(tmp_path / "suite")
    for task in folder.glob("*/task.toml"):
        task.write_text(task.read_text() + "[environment]\ngpus = 64\n")
    with serving() as server:
        done = milo(words_for(server, folder, "run", "budget.rounds=1"), tmp_path)
    assert done.returncode == 2
    assert re.search(r"task word-\d+: expected a host with 64 GPUs, found at most", done.stderr)
    assert not (tmp_path / "run").exists()
