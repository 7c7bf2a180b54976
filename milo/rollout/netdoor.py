"""Opens ports inside a sandbox's network from outside, where we may.

A socket belongs to the network namespace in which it was made, for ever. So root steps into the
sandbox's network for the time it takes to make a listening socket, and serves it from our own
event loop: nothing of ours runs inside, and no process is started for it.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from milo.rollout.status import StatusPipe
from milo.rollout.ways import Way

CLONE_NEWNET = 0x40000000
BACKLOG = 128
LOOPBACK = "lo"
SET_LINK_FLAGS = 0x8914
"""The request ``SIOCSIFFLAGS``; flags of zero take a link down."""
START_S = 10.0


class NetDoor:
    """The ports of one command; holds bubblewrap back until somebody listens. One owner."""

    def __init__(self, ways: Sequence[Way]) -> None:
        self._ways = ways
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
            for way in self._ways:
                await way.listener.listen_on(listen_inside(status.init.fd, way.port))
        self._release()

    def close(self) -> None:
        """Give every descriptor back; safe to call twice."""
        self._release()
        if self.read_fd >= 0:
            os.close(self.read_fd)
            self.read_fd = -1

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


def listen_inside(pidfd: int, port: int, address: str = "0.0.0.0") -> socket.socket:
    """A socket listening on `port` in the network of the process behind `pidfd`.

    Raises `OSError`. Every address is right where there is the loopback alone, for that may not be
    up yet, and then has none.
    """
    with _network_of(pidfd):
        inside = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        inside.bind((address, port))
        inside.listen(BACKLOG)
        inside.setblocking(False)
    except OSError:
        inside.close()
        raise
    return inside


def shut_links(pidfd: int) -> None:
    """Take down every link but the loopback in the network of the process behind `pidfd`.

    Whoever has no right over that network can't take one up again. Raises `OSError`.
    """
    with _network_of(pidfd):
        inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        names = [name for _, name in socket.if_nameindex()]
    with inside:
        for name in names:
            if name != LOOPBACK:
                request = struct.pack("16sh14x", name.encode(), 0)
                fcntl.ioctl(inside, SET_LINK_FLAGS, request)


@contextmanager
def _network_of(pidfd: int) -> Iterator[None]:
    """Stand in another network; what is made there stays there. Nothing may be awaited in it, or
    another task would find itself in the wrong network."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _set_namespace(pidfd)
        try:
            yield
        finally:
            _set_namespace(own)
    finally:
        os.close(own)


def _set_namespace(fd: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")
