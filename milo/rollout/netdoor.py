"""Opens the gateway's port inside a sandbox's network from outside, where we may.

A socket belongs to the network namespace in which it was made, for ever. So root steps into the
sandbox's network for the time it takes to make a listening socket, and serves it from our own
event loop: nothing of ours runs inside, and no process is started for it.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
from pathlib import Path

from milo.rollout.forward import Relay
from milo.rollout.status import StatusPipe

CLONE_NEWNET = 0x40000000
BACKLOG = 128
START_S = 10.0


class NetDoor:
    """The gateway's port for one command; holds bubblewrap back until it listens. One owner."""

    def __init__(self, target: Path, port: int) -> None:
        self._relay = Relay(target)
        self._port = port
        self.read_fd, self._write_fd = os.pipe()

    @property
    def arguments(self) -> tuple[str, ...]:
        """What makes bubblewrap wait for us before it starts the command."""
        return ("--block-fd", str(self.read_fd))

    async def open(self, status: StatusPipe) -> None:
        """Listen inside once the sandbox has a network, then let it go on.

        Waits for bubblewrap to name its init; unblocked by that, by its end, or after 10 s.
        Raises `OSError`.
        """
        os.close(self.read_fd)
        self.read_fd = -1
        await asyncio.wait((status.named,), timeout=START_S)
        if status.init is not None and status.init.alive:
            await self._relay.listen_on(listen_inside(status.init.fd, self._port))
        self._release()

    async def close(self) -> None:
        """Stop listening and give every descriptor back; safe to call twice."""
        self._release()
        if self.read_fd >= 0:
            os.close(self.read_fd)
            self.read_fd = -1
        await self._relay.close()

    def _release(self) -> None:
        if self._write_fd >= 0:
            os.close(self._write_fd)
            self._write_fd = -1


def may_enter() -> bool:
    """Whether this process may step into other network namespaces (root with all rights)."""
    try:
        own = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        _set_namespace(own)
    except OSError:
        return False
    finally:
        os.close(own)
    return True


def listen_inside(pidfd: int, port: int) -> socket.socket:
    """A socket listening on `port` in the network of the process behind `pidfd`.

    Does not yield, so no other task ever runs in the wrong network. Raises `OSError`. It listens
    on every address: inside there is the loopback alone, and it may not be up yet.
    """
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _set_namespace(pidfd)
        try:
            inside = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        finally:
            _set_namespace(own)
    finally:
        os.close(own)
    try:
        inside.bind(("0.0.0.0", port))
        inside.listen(BACKLOG)
        inside.setblocking(False)
    except OSError:
        inside.close()
        raise
    return inside


def _set_namespace(fd: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")
