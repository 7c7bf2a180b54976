"""An ordinary user who may use the engine: nothing of ours needs root, and nothing is left."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from base_image import BASE

from milo.rollout.docker.engine import Engine

USER = 1000
PROBE = """
import socket, sys
import milo.testing.sandbox_cases
socket.socket(socket.AF_UNIX).connect(sys.argv[1].removeprefix("unix://"))
"""
SCENE = """
import asyncio, json, sys
from pathlib import Path
from milo.core.ports import EnvironmentSpec
from milo.core.task import Image, Limits, Network, Setting
from milo.core.tree import FileTree
from milo.rollout.docker.choose import choose_docker
from milo.testing.sandbox_cases import python, shell
from milo.testing.sandbox_programs import TUNNELS

base, address, root = sys.argv[1:]

async def answer(reader, writer):
    writer.write(b"said " + await reader.read(100))
    writer.close()

async def main():
    sandbox = choose_docker(base, address=address, root=Path(root) / "scratch")
    gateway = await asyncio.start_unix_server(answer, f"{root}/gateway.sock")
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    image = Image(context=FileTree.of_texts({"Dockerfile": f"FROM {base}\\nWORKDIR /app\\n"}))
    said = []
    for setting in (Setting(hosts=("127.0.0.1",)), Setting(image=image, hosts=("127.0.0.1",))):
        environment = await sandbox.open(EnvironmentSpec(
            workspace=FileTree(), mounts={}, owner="unprivileged", setting=setting,
            limits=Limits(memory_mb=128, storage_mb=8, network=Network.ALLOWLIST),
            gateway_socket=Path(root) / "gateway.sock",
        ))
        call = "import socket; s = socket.create_connection(('127.0.0.1', 8765)); "
        call += "s.sendall(b'x'); s.shutdown(1); print(s.recv(99))"
        said.append((await environment.run(python(call, gateway=True))).stdout)
        tunnel = "import sys\\nsys.argv.append('127.0.0.2:%d')\\n" % port
        said.append((await environment.run(python(tunnel + TUNNELS, gateway=True))).stdout[:3])
        made = "mkdir -p /logs/verifier/deep; echo 1 > /logs/verifier/deep/x; "
        await environment.run(shell(made + "echo 1 > /logs/verifier/reward.txt"))
        await environment.clear_logs()
        said.append(len(await environment.logs()))
        await environment.close()
    gateway.close()
    server.close()
    print(json.dumps({"said": said, "words": sorted(sandbox.capabilities)}))

asyncio.run(main())
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder of the user's, in a place with a short name."""
    folder = Path(tempfile.mkdtemp(prefix="milo-user-"))
    folder.chmod(0o755)
    (folder / "scratch").mkdir()
    for place in (folder, folder / "scratch"):
        os.chown(place, USER, USER)
    yield folder
    shutil.rmtree(folder)


async def test_an_ordinary_user_gets_the_same_and_leaves_nothing(
    engine: Engine, address: str, open_folder: Path
) -> None:
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None:
        pytest.skip("root and setpriv are needed to become an ordinary user")
    group = Path(address.removeprefix("unix://")).stat().st_gid
    become = [setpriv, "--reuid", str(USER), "--regid", str(USER), "--groups", str(group)]
    may = subprocess.run([*become, sys.executable, "-c", PROBE, address], cwd="/", check=False)
    if may.returncode != 0:
        pytest.skip("an ordinary user can't read this checkout, or reach the engine")
    argv = [*become, sys.executable, "-c", SCENE, BASE, address, str(open_folder)]
    child = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd="/"
    )
    out, err = await child.communicate()
    assert child.returncode == 0, err.decode()
    found = json.loads(out)
    assert found["said"] == ["b'said x'\n", "403", 0] * 2, err.decode()
    assert "phase-network" not in found["words"]
    assert list((open_folder / "scratch").iterdir()) == []
