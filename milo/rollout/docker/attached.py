"""What a container prints, read from the engine's stream on the event loop.

The stream ends when the container's last process has ended, so it also tells of the end: no
thread waits for a container.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from milo.rollout.capture import Capture

READ_BYTES = 65536
HEADER = 8
STANDARD_ERROR = 2


class Frames:
    """Takes the multiplexed stream apart: header (stream, length), payload, and so on."""

    def __init__(self, out: Capture, err: Capture) -> None:
        self._sinks = (out, err)
        self._pending = b""
        self._left = 0
        self._sink = out

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        while data:
            if self._left:
                self._sink.feed(data[: self._left])
                taken = min(self._left, len(data))
                self._left, data = self._left - taken, data[taken:]
                continue
            wanted = HEADER - len(self._pending)
            self._pending, data = self._pending + data[:wanted], data[wanted:]
            if len(self._pending) == HEADER:
                self._sink = self._sinks[self._pending[0] == STANDARD_ERROR]
                self._left = int.from_bytes(self._pending[4:], "big")
                self._pending = b""


class Attached:
    """A container's output, attached to before it is started. One owner.

    `socket` is what the SDK's ``attach_socket`` gave; it is closed by us.
    """

    def __init__(self, socket: Any, output_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._out, self._err = Capture(output_bytes), Capture(output_bytes)
        self._frames = Frames(self._out, self._err)
        self._fd = os.dup(socket.fileno())
        close_socket(socket)
        os.set_blocking(self._fd, False)
        self._loop.add_reader(self._fd, self._on_data)

    @property
    def stdout(self) -> str:
        """What was kept of the standard output."""
        return self._out.text()

    @property
    def stderr(self) -> str:
        """What was kept of the standard error."""
        return self._err.text()

    async def wait(self, timeout_s: float) -> bool:
        """Wait for the stream's end, at most so long; whether it has ended."""
        try:
            async with asyncio.timeout(max(0.0, timeout_s)):
                await self._ended.wait()
        except TimeoutError:
            return self._ended.is_set()
        return True

    def close(self) -> None:
        """Stop reading; safe to call twice."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        self._ended.set()

    def _on_data(self) -> None:
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._frames.feed(data)
        else:
            self.close()


def close_socket(socket: Any) -> None:
    """Close what ``attach_socket`` gave, and the answer that it keeps alive."""
    response = getattr(socket, "_response", None)
    if response is not None:
        response.close()
    socket.close()
