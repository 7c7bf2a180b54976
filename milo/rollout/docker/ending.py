"""The engine's own word that a container has ended.

A container's output also ends when the engine dies, and one that was started again at once says
of such a container no more than that it was killed, which a harness's own death looks like too.
So the end is asked for on a connection of its own, made before the start: an engine that went
away never answers it.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from milo.rollout.docker.engine import CALL_S, Engine, EngineAway, EngineError

GONE = "the container engine went away while a command ran"


class Ending:
    """One answer that is waited for. One owner; made by `of`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def of(cls, engine: Engine, container: str) -> Ending:
        """Ask for a container's next end; when this returns the engine has taken note.

        Raises `EngineAway`.
        """
        try:
            async with asyncio.timeout(CALL_S):
                reader, writer = await asyncio.open_unix_connection(engine.socket)
                ending = cls(reader, writer)
                try:
                    await ending._ask(f"/v{engine.api.api_version}/containers/{container}/wait")
                except BaseException:
                    await ending.close()
                    raise
        except (OSError, EOFError, TimeoutError) as error:
            raise EngineAway(f"the container engine can't be reached: {error!r}") from error
        return ending

    async def wait(self, timeout_s: float) -> None:
        """Wait for the answer; raises `EngineAway` where there is none."""
        try:
            async with asyncio.timeout(timeout_s):
                body = await self._reader.read()
            json.loads(body)["StatusCode"]
        except (OSError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise EngineAway(GONE) from error

    async def close(self) -> None:
        """Give the connection back; safe to call twice."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _ask(self, path: str) -> None:
        # In the older form of the protocol an answer lasts until the connection's end.
        head = f"POST {path}?condition=next-exit HTTP/1.0\r\nHost: engine\r\nContent-Length: 0\r\n"
        self._writer.write(head.encode() + b"\r\n")
        await self._writer.drain()
        said = await self._reader.readuntil(b"\r\n\r\n")
        status = said.split(None, 2)[1]
        if status != b"200":
            words = (await self._reader.read()).decode(errors="replace")
            raise EngineError(f"the engine refused to tell of an end: {words.strip()}")
