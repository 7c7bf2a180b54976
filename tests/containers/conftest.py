"""The engine that these tests use: the one that DOCKER_HOST names, as `.ci/run` starts it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from base_image import BASE, make_base_image, missing_tools

from milo.core.errors import ConfigError
from milo.rollout.docker.choose import choose_docker
from milo.rollout.docker.engine import Engine, connect
from milo.rollout.docker.sandbox import DockerSandbox
from milo.testing.sandbox_cases import let_others_pass

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
    try:
        found = connect(address)
    except ConfigError as error:
        pytest.skip(str(error))
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
