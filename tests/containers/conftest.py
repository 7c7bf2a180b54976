"""The engine that these tests use: the one that DOCKER_HOST names, as `.ci/run` starts it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from base_image import BASE, make_base_image, missing_tools

from milo.rollout.docker.choose import choose_docker
from milo.rollout.docker.engine import Engine, connect
from milo.rollout.docker.sandbox import DockerSandbox
from milo.testing.sandbox_cases import let_others_pass

ROOT = Path(__file__).parents[2]
NO_ENGINE = "DOCKER_HOST is not set: start an engine with scripts/engine up DIR"


@pytest.fixture(scope="session")
def address() -> str:
    """The engine's address; skips with the reason where there is none."""
    named = os.environ.get("DOCKER_HOST", "")
    if not named:
        pytest.skip(os.environ.get("MILO_NO_ENGINE") or NO_ENGINE)
    return named


@pytest.fixture(scope="session")
def engine(address: str) -> Engine:
    """The engine, with the base image in it."""
    found = connect(address)  # one that was named and doesn't answer is a failure
    if reason := missing_tools():
        pytest.skip(reason)
    make_base_image(found.api, BASE)
    return found


@pytest.fixture
def make_docker(engine: Engine, address: str) -> Callable[[Path], DockerSandbox]:
    """Makes a sandbox whose scratch lies in a folder."""
    return lambda root: choose_docker(BASE, address=address, root=root)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Where environments lie; commands of another user must be able to pass through."""
    root = tmp_path / "scratch"
    root.mkdir()
    let_others_pass(root)
    return root


@pytest.fixture
def sandbox(make_docker: Callable[[Path], DockerSandbox], scratch: Path) -> DockerSandbox:
    """A sandbox with a scratch root of its own."""
    return make_docker(scratch)


@pytest.fixture
def own_engine() -> Iterator[Callable[[str], str]]:
    """Starts and stops an engine that a test may kill; skips where none can be started."""
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        pytest.skip("no engine of our own can be started here: root and dockerd are needed")
    # Sockets' names are short: 107 characters at most, and pytest's folders are deep.
    folder = tempfile.mkdtemp(prefix="milo-engine-")

    def control(word: str) -> str:
        argv = ["bash", str(ROOT / "scripts/engine"), word, folder]
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return f"unix://{folder}/docker.sock"

    try:
        yield control
    finally:
        control("down")
