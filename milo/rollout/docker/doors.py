"""What a command may reach beside its files: the model's gateway on the loopback.

As root we step into the container's network and listen there, and nothing of ours runs inside.
Else a script inside, on the image's own python3, forwards to a socket that the container sees.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from milo.core.ports import EnvironmentSpec
from milo.rollout.docker.leash import PLACE
from milo.rollout.forward import Relay
from milo.rollout.netdoor import listen_inside

SOCKET = "gateway.sock"
LAUNCHER = "launcher.py"


class Doors:
    """Opens them for one command at a time. One owner."""

    def __init__(self, spec: EnvironmentSpec, *, enters: bool) -> None:
        self._spec = spec
        self._enters = enters

    @property
    def variables(self) -> Mapping[str, str]:
        """What tells the command of its doors."""
        return {}

    def prefix(self, *, gateway: bool) -> tuple[str, ...]:
        """What stands before the command where it forwards for itself."""
        if not gateway or self._enters:
            return ()
        port = str(self._spec.gateway_port)
        return ("python3", "-I", "-S", f"{PLACE}/{LAUNCHER}", port, f"{PLACE}/{SOCKET}")

    @asynccontextmanager
    async def open(self, pid: int, folder: Path, *, gateway: bool) -> AsyncIterator[None]:
        """Serve the doors while a command runs whose first process is `pid`.

        `folder` is what the container sees at `leash.PLACE`. Raises `OSError`.
        """
        async with AsyncExitStack() as stack:
            socket = self._spec.gateway_socket
            if gateway and socket is not None:
                relay = Relay(socket)
                stack.push_async_callback(relay.close)
                if self._enters:
                    await listen_at(relay, pid, self._spec.gateway_port)
                else:
                    await self._listen_in(relay, folder)
                    stack.callback((folder / SOCKET).unlink, missing_ok=True)
            yield

    async def _listen_in(self, relay: Relay, folder: Path) -> None:
        (folder / SOCKET).unlink(missing_ok=True)
        (folder / LAUNCHER).write_bytes(launcher_source())
        await relay.listen_unix(folder / SOCKET)


async def listen_at(relay: Relay, pid: int, port: int) -> None:
    """Serve a port in the network of the process `pid`; nothing to do where it is dead already."""
    if pid <= 0:
        return
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await relay.listen_on(listen_inside(fd, port))
    finally:
        os.close(fd)


def launcher_source() -> bytes:
    """The script that forwards inside."""
    return (Path(__file__).parents[1] / LAUNCHER).read_bytes()
