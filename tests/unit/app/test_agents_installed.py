"""Coding agents are installed whole or not at all, and once."""

from __future__ import annotations

from pathlib import Path

import pytest

from milo.agents.cli.description import load
from milo.app.agents import NODE, check_agents, install, installed, needs, node_version
from milo.core.errors import ConfigError, MiloError

ABOUT = """
name: mine
title: Mine
wire: chat
command: [mine, "{prompt}"]
install: {npm: ["mine@1.0"], node: 22}
"""


@pytest.fixture
def description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A description's path; agents go into the test's own folder."""
    monkeypatch.setenv("MILO_AGENTS", str(tmp_path / "agents"))
    path = tmp_path / "mine.yaml"
    path.write_text(ABOUT)
    return str(path)


def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> Path:
    """A search path with these programs alone; the file that each writes its arguments to."""
    folder, log = tmp_path / "bin", tmp_path / "log"
    folder.mkdir(exist_ok=True)
    for name, script in scripts.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\necho {name} \"$@\" >> '{log}'\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return log


def test_an_agent_is_installed_once_its_commands_have_ended_well(
    description: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = programs(tmp_path, monkeypatch, npm="exit 0", node="echo v22.1.0")
    about = load(description)
    assert not installed(about)
    install([description])
    assert installed(about)
    check_agents([f"{description}:m"])
    install([description])
    made = [line for line in log.read_text().splitlines() if line.startswith("npm install")]
    assert len(made) == 1 and "mine@1.0" in made[0], "the second time it is left as it is"


def test_another_version_replaces_the_one_that_is_there(
    description: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = programs(tmp_path, monkeypatch, npm="exit 0", node="echo v22.1.0")
    install([description])
    Path(description).write_text(ABOUT.replace("1.0", "2.0"))
    install([description])
    assert "mine@1.0" in log.read_text() and "mine@2.0" in log.read_text()


def test_an_installation_that_fails_leaves_no_agent_behind(
    description: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs(tmp_path, monkeypatch, npm="exit 7", node="echo v22.1.0")
    with pytest.raises(MiloError, match="ended with 7"):
        install([description])
    assert not installed(load(description))
    with pytest.raises(ConfigError, match="it installed"):
        check_agents([f"{description}:m"])


def test_a_machine_without_npm_is_told_so(
    description: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs(tmp_path, monkeypatch)
    assert node_version() == 0
    with pytest.raises(MiloError, match=r"installing mine: .*npm"):
        install([description])


@pytest.mark.parametrize(("node", "brought"), [(0, True), (20, True), (22, False), (24, False)])
def test_node_is_brought_along_where_the_machines_is_too_old(node: int, brought: bool) -> None:
    assert (NODE in needs(load("kimi"), node).npm) is brought
    assert not needs(load("deepagents"), node).npm
