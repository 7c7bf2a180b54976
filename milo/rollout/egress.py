"""The way out of a sandbox to the hosts on its task's list, and to no others: an HTTP proxy.

A sandbox without a network reaches it on its loopback, told by the usual variables. It opens
tunnels (CONNECT, for TLS and whatever else asks for one) and passes plain HTTP on. Names are
looked up here, so a sandbox needs no name server, and can't tell one anything.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from milo.rollout.forward import Ends, join

HEAD_S = 30.0
CONNECT_S = 30.0
HEAD_END = b"\r\n\r\n"
HOP_HEADERS = ("proxy-connection", "proxy-authorization", "connection", "keep-alive", "host")
HTTP_PORT = 80
PROXY_PORT = 8766
HERE = "127.0.0.1,localhost"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
LookUp = Callable[[str, int], Awaitable[list[str]]]


class Refused(Exception):
    """A request that is not passed on; says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a client asks for: the target, and what is to be sent there first."""

    host: str
    port: int
    head: bytes
    tunnel: bool


class Allowed:
    """The hosts that may be reached: names, ``*.`` patterns, addresses, CIDR ranges."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._ends: list[str] = []
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for host in hosts:
            try:
                self._networks.append(ipaddress.ip_network(host, strict=False))
            except ValueError:
                name = host.lower().rstrip(".")
                self._ends += [name[1:]] if name.startswith("*.") else []
                self._names.add(name)

    def names(self, host: str) -> bool:
        """Whether a host is on the list by its name, or as the address that it is."""
        address = _address(host)
        if address is not None:
            return self.holds(address)
        name = host.lower().rstrip(".")
        return name in self._names or any(name.endswith(end) for end in self._ends)

    def holds(self, address: Address) -> bool:
        """Whether an address is on the list."""
        return any(address in network for network in self._networks)

    def admits(self, address: Address) -> bool:
        """Whether a name on the list may stand for an address: never for one of this machine or
        its neighbourhood that isn't on the list itself."""
        plain = getattr(address, "ipv4_mapped", None) or address
        near = plain.is_loopback or plain.is_link_local or plain.is_unspecified
        return self.holds(address) or not (near or plain.is_multicast)


class Egress:
    """Serves connections of one sandbox. Any number at once; stateless."""

    def __init__(self, allowed: Allowed, look_up: LookUp | None = None) -> None:
        self._allowed = allowed
        self._look_up = look_up or addresses_of

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request and pass it on, or say why not. Ends with the connection."""
        try:
            async with asyncio.timeout(HEAD_S):
                request = read_request(await reader.readuntil(HEAD_END))
            up = await self._reach(request)
        except Refused as error:
            await _answer(writer, "403 Forbidden", str(error))
        except (OSError, TimeoutError) as error:
            await _answer(writer, "502 Bad Gateway", str(error) or type(error).__name__)
        except (EOFError, ValueError, asyncio.LimitOverrunError) as error:
            await _answer(writer, "400 Bad Request", str(error))
        else:
            if request.tunnel:
                writer.write(b"HTTP/1.1 200 Connection established" + HEAD_END)
            else:
                up[1].write(request.head)
            await join((reader, writer), up)

    async def _reach(self, request: Request) -> Ends:
        """A connection to the target; raises `Refused`, or `OSError` where nobody answers."""
        if not self._allowed.names(request.host):
            raise Refused(f"{request.host} is not on the task's list of hosts")
        async with asyncio.timeout(CONNECT_S):
            found = await self._look_up(request.host, request.port)
            good = [text for text in found if self._allowed.admits(ipaddress.ip_address(text))]
            if not good:
                raise Refused(f"{request.host} stands for no address that may be reached")
            return await _first(good, request.port)


def proxy_variables(port: int = PROXY_PORT) -> Mapping[str, str]:
    """What tells programs of a proxy on the loopback, in the spellings that they know."""
    address = f"http://127.0.0.1:{port}"
    names = ("http_proxy", "https_proxy", "all_proxy")
    values = {**dict.fromkeys(names, address), "no_proxy": HERE}
    return {**values, **{name.upper(): value for name, value in values.items()}}


def read_request(head: bytes) -> Request:
    """What the head of a request asks a proxy for; raises `ValueError` where it isn't one."""
    lines = head[: -len(HEAD_END)].decode("latin-1").split("\r\n")
    method, target, version = lines[0].split(" ")
    if method == "CONNECT":
        host, port = _split(f"//{target}", 0)
        if not port:
            raise ValueError(f"no port in {target!r}")
        return Request(host=host, port=port, head=b"", tunnel=True)
    if not target.lower().startswith("http://"):
        raise ValueError(f"no absolute http address in {lines[0]!r}")
    host, port = _split(target, HTTP_PORT)
    url = urlsplit(target)
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    kept = [line for line in lines[1:] if line.partition(":")[0].strip().lower() not in HOP_HEADERS]
    # One request a connection: the next one may be for another host.
    rows = [f"{method} {path} {version}", f"Host: {url.netloc.rpartition('@')[2]}", *kept]
    text = "\r\n".join([*rows, "Connection: close", "", ""])
    return Request(host=host, port=port, head=text.encode("latin-1"), tunnel=False)


async def addresses_of(host: str, port: int) -> list[str]:
    """The addresses that a name stands for on this machine; raises `OSError` for none."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]).partition("%")[0] for one in found))


async def _first(addresses: list[str], port: int) -> Ends:
    """A connection to the first address that answers."""
    failed: OSError = OSError("no address")
    for address in addresses:
        try:
            return await asyncio.open_connection(address, port)
        except OSError as error:
            failed = error
    raise failed


async def _answer(writer: asyncio.StreamWriter, status: str, words: str) -> None:
    text = f"milo: {words}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
    writer.write(head.encode() + b"Connection: close" + HEAD_END + text)
    await writer.drain()


def _split(url: str, default: int) -> tuple[str, int]:
    """Host and port of an address; raises `ValueError` where they can't be read."""
    parts = urlsplit(url)
    if not parts.hostname:
        raise ValueError(f"no host in {url!r}")
    return parts.hostname, parts.port or default


def _address(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
