"""What importing a room loads: heavy libraries come in where they are used, and no earlier."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
from test_architecture import FILES, ROOT, module_of, room_of


@pytest.mark.parametrize("room", ["core", "search"])
def test_importing_a_pure_room_loads_neither_ray_nor_litellm(room: str) -> None:
    modules = [module_of(p) for p in FILES if room_of(module_of(p)) == room]
    assert all(importlib.util.find_spec(name) for name in modules)
    script = f"import sys, {', '.join(modules)}; print(*sorted(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    assert not {"ray", "litellm", "hydra", "docker", "wandb", "pyarrow"} & set(out)


def test_the_command_line_answers_without_loading_anything_heavy() -> None:
    script = "import sys, milo.app.cli as c; c.build_parser(); print(*sorted(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    assert not {"ray", "litellm", "hydra", "numpy", "docker", "wandb", "pyarrow"} & set(out)
