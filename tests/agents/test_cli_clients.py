"""One fault of each coding agent a day; `matrix_cli` holds them all (``scripts/bench agents``)."""

from __future__ import annotations

import datetime
import shutil

import matrix_cli
import pytest


@pytest.mark.timeout(420)
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize("name", matrix_cli.CLIENTS)
def test_a_fault_of_an_agent_ends_in_the_right_verdict(name: str) -> None:
    """Which fault it is changes from day to day and from agent to agent."""
    day = datetime.datetime.now(datetime.UTC).toordinal()
    faults = matrix_cli.FAULTS
    fault = faults[(day + matrix_cli.CLIENTS.index(name)) % len(faults)]
    print(f"today: {fault.__name__}")  # shown where it fails
    fault(name)
