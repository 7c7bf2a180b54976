"""Every coding agent with every fault: the whole of `tests/agents/matrix_cli`, with its seconds.

``scripts/bench agents`` takes all agents that are installed; pytest's own options may follow, for
instance ``-k codex``. ``milo mutators install NAME`` brings one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

MATRIX = Path(__file__).parents[1] / "agents" / "matrix_cli.py"


if __name__ == "__main__":
    sys.exit(pytest.main([str(MATRIX), "-v", "-rs", "--durations=0", *sys.argv[1:]]))
