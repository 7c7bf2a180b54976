"""Listens where commands can reach it, and forwards to a gateway's unix socket.

On a loopback port for the plain sandbox, inside a sandbox's own network, or on a unix socket that
every user may connect to, whoever owns the gateway's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

CHUNK = 65536
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Listener:
    """Listens, and gives every connection to `handle`. One owner, one loop."""

    def __init__(self, handle: Handler) -> None:
        self._handle = handle
        self._server: asyncio.AbstractServer | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen_tcp(self) -> int:
        """Listen on a free loopback port; the port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = server
        return int(server.sockets[0].getsockname()[1])

    async def listen_on(self, listening: socket.socket) -> None:
        """Serve a socket that listens already, and own it."""
        self._server = await asyncio.start_server(self._serve, sock=listening)

    async def listen_unix(self, path: Path) -> None:
        """Listen on a unix socket that every user of the host may connect to."""
        # Named through its folder's descriptor: the kernel takes no more than 107 characters.
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            short = f"/proc/self/fd/{folder}/{path.name}"
            self._server = await asyncio.start_unix_server(self._serve, short)
        finally:
            os.close(folder)
        os.chmod(path, 0o666)

    async def close(self) -> None:
        """Stop listening and cut what is open; safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._handle(reader, writer)
        except asyncio.CancelledError:
            return  # closed by us; the stream server would report a cancelled task as a fault
        except OSError:
            return  # either side went away: the other has been closed
        finally:
            self._tasks.discard(task)
            writer.close()


class Relay(Listener):
    """Passes every connection on to a unix socket."""

    def __init__(self, target: Path) -> None:
        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            up_reader, up_writer = await asyncio.open_unix_connection(str(target))
            await join((reader, writer), (up_reader, up_writer))

        super().__init__(pass_on)


async def join(one: Ends, other: Ends) -> None:
    """Copy both ways until both have ended; closes the other's connection."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(one[0], other[1]))
            group.create_task(_copy(other[0], one[1]))
    finally:
        other[1].close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy to the end of the stream, then pass the half-close on."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
