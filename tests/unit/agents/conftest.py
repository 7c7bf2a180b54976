"""A folder to work in, as techniques find it inside an environment."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    task = tmp_path / "task.md"
    task.write_text("Add the numbers of `in.txt` and write the sum to `out.txt`.")
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("MILO_TASK", str(task))
    monkeypatch.setenv("MILO_DEADLINE", "99999999999")
    return workspace
