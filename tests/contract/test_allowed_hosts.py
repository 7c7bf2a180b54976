"""The way out of a sandbox, on real connections of this machine: what passes and what is said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from milo.rollout.egress import Allowed, Egress, LookUp
from milo.rollout.forward import Listener

HERE = "127.0.0.1"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say what was asked, to the end of what comes."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\nyou said " + await reader.read(4096))
    await writer.drain()
    writer.close()


@asynccontextmanager
async def scene(*hosts: str, look_up: LookUp | None = None) -> AsyncIterator[tuple[int, int]]:
    """The ports of a proxy for these hosts, and of a server."""
    server = await asyncio.start_server(answer, HERE, 0)
    proxy = Listener(Egress(Allowed(hosts), look_up).serve)
    try:
        yield await proxy.listen_tcp(), server.sockets[0].getsockname()[1]
    finally:
        await proxy.close()
        server.close()


async def asked(port: int, request: str) -> str:
    """What the proxy answers to a request, to the end."""
    reader, writer = await asyncio.open_connection(HERE, port)
    writer.write(request.encode())
    writer.write_eof()
    said = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    await writer.wait_closed()
    return said.decode()


async def found_here(host: str, port: int) -> list[str]:
    return [HERE]


async def test_a_tunnel_carries_bytes_as_they_are() -> None:
    async with scene(HERE) as (proxy, server):
        said = await asked(proxy, f"CONNECT {HERE}:{server} HTTP/1.1\r\n\r\nany\x00thing")
    assert said == (
        "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n\r\nyou said any\x00thing"
    )


async def test_plain_http_is_passed_on_with_its_body() -> None:
    async with scene(HERE) as (proxy, server):
        head = f"POST http://{HERE}:{server}/x HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
        said = await asked(proxy, head)
    assert "you said POST /x HTTP/1.1\r\n" in said and "Connection: close" in said
    assert said.endswith("\r\n\r\nbody")


async def test_a_host_that_is_not_listed_is_refused_by_name_without_being_looked_up() -> None:
    asked_for: list[str] = []

    async def look_up(host: str, port: int) -> list[str]:
        asked_for.append(host)
        return [HERE]

    async with scene("index.example.io", look_up=look_up) as (proxy, _):
        said = await asked(proxy, "CONNECT secret-text.evil.net:443 HTTP/1.1\r\n\r\n")
    assert said.startswith("HTTP/1.1 403") and "secret-text.evil.net" in said
    assert asked_for == [], "a name server would learn what a harness wants it to"


async def test_a_listed_name_that_leads_to_this_machine_is_refused() -> None:
    async with scene("index.example.io", look_up=found_here) as (proxy, server):
        said = await asked(proxy, f"CONNECT index.example.io:{server} HTTP/1.1\r\n\r\n")
    assert said.startswith("HTTP/1.1 403")
    async with scene("index.example.io", HERE, look_up=found_here) as (proxy, server):
        said = await asked(proxy, f"CONNECT index.example.io:{server} HTTP/1.1\r\n\r\nx")
    assert "you said x" in said, "unless the address is on the list as well"


async def test_a_host_that_does_not_answer_and_nonsense_are_told_apart() -> None:
    async with scene(HERE) as (proxy, server):
        pass
    async with scene(HERE) as (proxy, _):
        dead = await asked(proxy, f"CONNECT {HERE}:{server} HTTP/1.1\r\n\r\n")
        odd = await asked(proxy, "GET / HTTP/1.1\r\n\r\n")
        long = await asked(proxy, f"GET http://{HERE}/ HTTP/1.1\r\nX: {'x' * 100_000}\r\n\r\n")
        cut = await asked(proxy, "CONNECT")
    assert dead.startswith("HTTP/1.1 502")
    assert all(said.startswith("HTTP/1.1 400") for said in (odd, long, cut))
