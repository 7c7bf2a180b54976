"""Only an engine's own word ends a command: a connection that breaks off is no answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import cast

import pytest

from milo.rollout.docker.ending import GONE, Ending
from milo.rollout.docker.engine import Engine, EngineAway, EngineError

OK = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"


@asynccontextmanager
async def engine(*parts: bytes) -> AsyncIterator[tuple[Engine, list[str]]]:
    """An engine that answers so, piece by piece, and then closes; and what it was asked."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    with TemporaryDirectory(prefix="end-", dir="/tmp") as folder:  # a socket's name must be short
        socket = f"{folder}/engine"
        async with await asyncio.start_unix_server(answer, socket):
            stand_in = SimpleNamespace(socket=socket, api=SimpleNamespace(api_version="1.41"))
            yield cast(Engine, stand_in), asked


async def waited(*parts: bytes) -> None:
    async with engine(*parts) as (stand_in, _):
        ending = await Ending.of(stand_in, "box")
        try:
            await ending.wait(5)
        finally:
            await ending.close()


async def test_an_answer_is_an_end_wherever_it_is_cut() -> None:
    await waited(OK, b'{"Status', b'Code": 137}\n')


@pytest.mark.parametrize("rest", [b"", b"{", b'{"Status', b"[]", b'{"message": "x"}'])
async def test_a_connection_that_breaks_off_is_a_dead_engine(rest: bytes) -> None:
    with pytest.raises(EngineAway, match=GONE):
        await waited(OK, rest)


async def test_an_engine_that_refuses_or_is_not_there_is_told() -> None:
    with pytest.raises(EngineError, match="no such container"):
        await waited(b"HTTP/1.0 404 Not Found\r\n\r\n", b'{"message": "no such container"}')
    with pytest.raises(EngineError, match="can't be reached"):
        await waited(b"HTTP/1.0 200")
    async with engine() as (stand_in, _):
        pass
    with pytest.raises(EngineAway, match="can't be reached"):
        await Ending.of(stand_in, "box")


async def test_the_next_end_is_asked_for_before_the_start() -> None:
    """`not-running` would be answered at once: a container that was made does not run yet."""
    async with engine(OK, b'{"StatusCode": 0}') as (stand_in, asked):
        await (await Ending.of(stand_in, "box")).close()
    assert asked[0].startswith("POST /v1.41/containers/box/wait?condition=next-exit HTTP/1.0\r\n")
