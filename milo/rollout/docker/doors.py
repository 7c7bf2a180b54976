"""How a command gets its ways out: listeners on the loopback of its container.

As root we step into the container's network and listen there, and nothing of ours runs inside.
Else a script inside, on the image's own python3, forwards to sockets that the container sees.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from milo.rollout.docker.leash import PLACE
from milo.rollout.netdoor import listen_inside, shut_links
from milo.rollout.ways import Way, launched

LAUNCHER = "launcher.py"
LOOPBACK = "127.0.0.1"


class Doors:
    """Those of one command, opened while it runs. One owner.

    `folder` is what the container sees at `leash.PLACE`; `shut` says that its links to other
    networks must be taken down, which only root can (`enters`).
    """

    def __init__(
        self, ways: tuple[Way, ...], folder: Path, *, enters: bool, shut: bool = False
    ) -> None:
        self._ways = ways
        self._folder = folder
        self._enters = enters
        self._shut = shut

    @property
    def prefix(self) -> tuple[str, ...]:
        """What stands before the command where it forwards for itself."""
        if not self._ways or self._enters:
            return ()
        return ("python3", *launched(self._ways, f"{PLACE}/{LAUNCHER}", PLACE))

    @asynccontextmanager
    async def open(self, pid: int) -> AsyncIterator[None]:
        """Serve the doors while a command runs whose first process is `pid`; raises `OSError`."""
        async with AsyncExitStack() as stack:
            for way in self._ways:
                stack.push_async_callback(way.listener.close)
            with _process(pid) as fd:
                if self._shut and fd >= 0:
                    shut_links(fd)
                for way in self._ways:
                    if not self._enters:
                        stack.callback(await self._listen_in(way))
                    elif fd >= 0:
                        await way.listener.listen_on(listen_inside(fd, way.port, LOOPBACK))
            yield

    async def _listen_in(self, way: Way) -> Callable[[], None]:
        """Listen on a socket that the container sees; what removes it again."""
        place = self._folder / way.socket
        place.unlink(missing_ok=True)
        (self._folder / LAUNCHER).write_bytes(launcher_source())
        await way.listener.listen_unix(place)
        return lambda: place.unlink(missing_ok=True)


@contextmanager
def _process(pid: int) -> Iterator[int]:
    """A descriptor of a process; -1 where it is dead already."""
    fd = -1
    try:
        if pid > 0:
            fd = os.pidfd_open(pid)
    except ProcessLookupError:
        fd = -1
    try:
        yield fd
    finally:
        if fd >= 0:
            os.close(fd)


def launcher_source() -> bytes:
    """The script that forwards inside."""
    return (Path(__file__).parents[1] / LAUNCHER).read_bytes()
