"""What containers may do, whose they are, and that none outlives its owner."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from base_image import BASE

from milo.core.ports import Environment, EnvironmentSpec
from milo.core.task import Limits, Network
from milo.core.tree import FileTree
from milo.rollout.docker import choose
from milo.rollout.docker.choose import is_seen
from milo.rollout.docker.engine import Engine
from milo.rollout.docker.labels import OWNER, RUN
from milo.rollout.docker.networks import Networks
from milo.rollout.docker.sandbox import DockerSandbox
from milo.rollout.maker import maker_name, this_maker
from milo.testing.sandbox_cases import let_others_pass, python, shell

ROOT = Path(__file__).parents[2]
TICK = "import time\nfor n in range(9999):\n time.sleep(.02); open('tick', 'w').write(str(n))\n"
HOST = """
import asyncio, sys
from pathlib import Path
from milo.core.ports import EnvironmentSpec
from milo.core.task import Limits, Network
from milo.core.tree import FileTree
from milo.rollout.docker.choose import choose_docker
from milo.testing.sandbox_cases import python

async def main():
    base, address, root, run, code = sys.argv[1:]
    sandbox = choose_docker(base, address=address, root=Path(root))
    public = "public-network" in sandbox.capabilities
    limits = Limits(network=Network.PUBLIC if public else Network.NONE)
    spec = EnvironmentSpec(workspace=FileTree(), mounts={}, limits=limits, owner=run)
    environment = await sandbox.open(spec)
    await environment.run(python(code, timeout_s=60))

asyncio.run(main())
"""


def spec_of(owner: str, **limits: object) -> EnvironmentSpec:
    return EnvironmentSpec(
        workspace=FileTree(),
        mounts={"/harness": FileTree.of_texts({"main.py": "print(1)\n"})},
        limits=Limits(memory_mb=128, storage_mb=8, processes=24, **limits),  # type: ignore[arg-type]
        owner=owner,
    )


@pytest.fixture
async def environment(sandbox: DockerSandbox) -> AsyncIterator[Environment]:
    opened = await sandbox.open(spec_of("hygiene"))
    yield opened
    await opened.close()


async def start_host(address: str, root: Path, run: str) -> tuple[asyncio.subprocess.Process, Path]:
    """A process with an environment in which something ticks; and the file where it does."""
    host = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOST, BASE, address, str(root), run, TICK)
    )
    ticks: list[Path] = []
    while not ticks:
        assert host.returncode is None, "the host died"
        await asyncio.sleep(0.05)
        ticks = list(root.glob(f"milo-{run}.*/workspace/tick"))
    return host, ticks[0]


async def stands_still(tick: Path) -> bool:
    before = tick.read_text()
    await asyncio.sleep(0.4)
    return tick.read_text() == before


def of_run(engine: Engine, run: str) -> list[dict[str, object]]:
    wanted = {"label": f"{RUN}={run}"}
    containers = engine.api.containers(all=True, filters=wanted)
    return [*containers, *engine.api.networks(filters=wanted)]


async def test_commands_have_no_rights_and_no_way_to_new_ones(environment: Environment) -> None:
    said = (await environment.run(shell("cat /proc/self/status; id -u"))).stdout
    for line in ("CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"):
        assert line in said
    assert "Seccomp:\t2" in said
    assert said.split()[-1] != "0"


async def test_too_much_memory_is_told_from_a_failure(environment: Environment) -> None:
    ended = await environment.run(python("a = [bytearray(1 << 20) for _ in range(999)]"))
    assert (ended.limit, ended.code) == ("memory", 137)
    ended = await environment.run(python("raise SystemExit(137)"))
    assert (ended.limit, ended.code) == ("", 137), "what happened before isn't told again"


async def test_all_that_is_made_bears_the_run_and_its_maker(
    sandbox: DockerSandbox, engine: Engine
) -> None:
    public = "public-network" in sandbox.capabilities
    network = Network.PUBLIC if public else Network.NONE
    opened = await sandbox.open(spec_of("labelled", network=network))
    try:
        await opened.run(shell("true"))
        found = of_run(engine, "labelled")
        assert len(found) == (2 if public else 1)
        for thing in found:
            assert thing["Labels"][OWNER] == this_maker()  # type: ignore[index]
    finally:
        await opened.close()
    assert of_run(engine, "labelled") == []


async def test_nothing_runs_on_after_its_owner_is_killed_and_the_rest_is_reaped(
    sandbox: DockerSandbox, engine: Engine, address: str, scratch: Path
) -> None:
    """Also before anybody reaps: a hostile harness must not work on unwatched."""
    host, tick = await start_host(address, scratch, "killed")
    bystander = await sandbox.open(spec_of("killed-not"))
    await bystander.run(shell("true"))
    os.kill(host.pid, signal.SIGKILL)
    await host.wait()
    await asyncio.sleep(0.5)
    assert await stands_still(tick)
    assert len(of_run(engine, "killed")) >= 1
    assert await sandbox.reap("killed") >= 2
    assert await sandbox.reap("killed") == 0
    assert of_run(engine, "killed") == []
    assert (await bystander.run(shell("echo alive"))).stdout == "alive\n"
    await bystander.close()
    assert list(scratch.iterdir()) == []


async def test_what_a_living_owner_of_the_same_run_uses_is_not_reaped(
    sandbox: DockerSandbox, engine: Engine, address: str, scratch: Path, tmp_path: Path
) -> None:
    """Two hosts of one run may share an engine."""
    elsewhere = tmp_path / "scratch-two"
    elsewhere.mkdir()
    let_others_pass(elsewhere)
    host, tick = await start_host(address, elsewhere, "shared")
    assert await sandbox.reap("shared") == 0
    assert not await stands_still(tick)
    os.kill(host.pid, signal.SIGKILL)
    await host.wait()
    assert await sandbox.reap("shared") >= 1
    assert of_run(engine, "shared") == []


async def test_a_public_network_is_the_environments_own(
    sandbox: DockerSandbox, engine: Engine
) -> None:
    if "public-network" not in sandbox.capabilities:
        pytest.skip("this engine can make no bridges")
    look = "import socket; print([name for _, name in socket.if_nameindex()])"
    opened = [await sandbox.open(spec_of("public", network=Network.PUBLIC)) for _ in range(2)]
    try:
        for environment in opened:
            assert "eth0" in (await environment.run(python(look))).stdout
        wanted = {"label": f"{RUN}=public"}
        used = [
            [network["NetworkID"] for network in container["NetworkSettings"]["Networks"].values()]
            for container in engine.api.containers(all=True, filters=wanted)
        ]
        assert len(used) == 2 and used[0] != used[1]
    finally:
        for environment in opened:
            await environment.close()


async def test_there_are_networks_for_more_environments_than_the_engine_has_addresses_for(
    engine: Engine, sandbox: DockerSandbox
) -> None:
    """Its own pool ends after some thirty; a host may have hundreds of slots."""
    if "public-network" not in sandbox.capabilities:
        pytest.skip("this engine can make no bridges")
    networks = Networks(engine)
    try:
        made = [await networks.make("many") for _ in range(40)]
        assert len(set(made)) == 40
    finally:
        assert await networks.reap("many") == 40
    assert of_run(engine, "many") == []


async def test_the_reaper_takes_what_the_dead_left_in_passing_and_nothing_else(
    engine: Engine, sandbox: DockerSandbox
) -> None:
    """Probes of images belong to no run; volumes outlive a container that an engine dropped."""
    dead = {OWNER: f"{this_maker().partition('-')[0]}-7fffffff-1"}
    living = {OWNER: maker_name(os.getppid())}
    api = engine.api
    owners = {"dead": {RUN: "", **dead}, "living": {RUN: "", **living}, "foreign": {}}
    boxes = {
        name: api.create_container(BASE, ["true"], labels=given)["Id"]
        for name, given in owners.items()
    }
    for name, given in {"dead": dead, "living": living}.items():
        api.create_volume(f"milo-test-{name}", labels={RUN: "passing", **given})
    try:
        assert await sandbox.reap("passing") == 2
        assert await sandbox.reap("passing") == 0
        left = {one["Id"] for one in api.containers(all=True)}
        assert {name for name, box in boxes.items() if box in left} == {"living", "foreign"}
        volumes = api.volumes(filters={"label": f"{RUN}=passing"})["Volumes"]
        assert [one["Name"] for one in volumes] == ["milo-test-living"]
    finally:
        for name in ("living", "foreign"):
            api.remove_container(boxes[name])
        api.remove_volume("milo-test-living")


def test_an_engine_tells_folders_that_it_sees_from_others(
    engine: Engine, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own words decide where scratch lies."""
    assert is_seen(engine, BASE, scratch)
    monkeypatch.setattr(choose, "make_folder", lambda *_, **__: scratch / "elsewhere")
    assert not is_seen(engine, BASE, scratch)
    assert list(scratch.iterdir()) == []
