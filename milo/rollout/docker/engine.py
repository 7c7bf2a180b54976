"""The Docker engine of this host, asked through its SDK without blocking the event loop.

Calls run in a few threads of their own, each with a time limit, so that a slow engine holds up
nobody but who asked. The engine must be reached through a unix socket: it is shown our folders.
"""

from __future__ import annotations

import asyncio
import socket
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from milo.core.errors import ConfigError, MiloError, SandboxLost

T = TypeVar("T")

DEFAULT_ADDRESS = "unix:///var/run/docker.sock"
CALL_S = 60.0
PROBE_S = 10.0
THREADS = 16
OLDEST_API = (1, 41)
HEREDOCS_SINCE = 23
NEWEST_API = (1, 44)
"""The interface that is spoken, at most: newer engines still understand it."""


class EngineError(MiloError):
    """The engine refused, failed, or can't be reached."""


class EngineAway(EngineError, SandboxLost):
    """The engine can't be reached: it is dead, or comes back in a while."""


class NotThere(EngineError):
    """The engine knows no such container, image or network."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineFacts:
    """What the engine says of itself: version, limits it can enforce, and cores.

    `heredocs` says whether its BuildKit knows here-documents of itself.
    """

    version: str
    memory: bool
    swap: bool
    pids: bool
    cpu: bool
    cores: int
    heredocs: bool = False


class Engine:
    """Any number of calls at once; at most `THREADS` are under way, the rest wait their turn.

    `socket` is where it listens, for connections that no thread should wait for.
    """

    def __init__(self, client: Any, facts: EngineFacts, socket: str) -> None:
        self.api = client
        self.facts = facts
        self.socket = socket
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="engine")
        # A sandbox has no end of its own: connections go when nobody uses it any more.
        weakref.finalize(self, client.close)

    async def ask(
        self,
        function: Callable[..., T],
        *args: object,
        undo: Callable[[T], object] | None = None,
        **kwargs: object,
    ) -> T:
        """Call a function of the SDK (`engine.api.…`) in a thread.

        Raises `NotThere` or `EngineError`. A cancelled caller waits for the call to end first,
        and its result is given to `undo`; a call ends within its time limit.
        """
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._threads, lambda: translated(function, *args, **kwargs))
        cancelled: asyncio.CancelledError | None = None
        while not call.done():
            try:
                await asyncio.wait((call,))
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is None:
            return call.result()
        # Looked at, so that nobody reports it as lost.
        if call.exception() is None and undo is not None:
            await loop.run_in_executor(self._threads, undo, call.result())
        raise cancelled


def translated(function: Callable[..., T], *args: object, **kwargs: object) -> T:
    """The function's result; its faults as `EngineError`s."""
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    try:
        return function(*args, **kwargs)
    except APIError as error:
        text = str(error.explanation or error)
        raise (NotThere if error.status_code == 404 else EngineError)(text) from error
    except (DockerException, RequestException, HTTPError, OSError) as error:
        raise EngineAway(f"the container engine can't be reached: {error}") from error


def connect(address: str) -> Engine:
    """The engine behind an address; blocks for some 20 ms.

    Raises `ConfigError` where none answers, or it is on another machine, or too old.
    """
    if not address.startswith("unix://"):
        found = f"{address}, which may be another machine"
        raise ConfigError("DOCKER_HOST", "an engine of this machine (unix://…)", found)
    from docker import APIClient

    _knock(address)
    try:
        with_version = translated(_client, APIClient, address, f"{NEWEST_API[0]}.{NEWEST_API[1]}")
        info = translated(with_version.info)
    except EngineError as error:
        raise ConfigError("sandbox docker", f"an engine at {address}", str(error)) from error
    return Engine(with_version, facts_of(info), address.removeprefix("unix://"))


def _knock(address: str) -> None:
    """Raise `ConfigError` where nobody listens; the SDK would leave its socket open."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(address.removeprefix("unix://"))
        except OSError as error:
            expected = f"an engine at {address}"
            raise ConfigError("sandbox docker", expected, str(error)) from error


def _client(make: Callable[..., Any], address: str, newest: str) -> Any:
    """A client that speaks the engine's own version, or the newest that we know."""
    probe = make(base_url=address, version=newest, timeout=PROBE_S)
    try:
        # The one call that no engine refuses for its version.
        said = probe.version(api_version=False)["ApiVersion"]
    finally:
        probe.close()
    spoken = min(NEWEST_API, _numbers(said))
    if spoken < OLDEST_API:
        raise ConfigError("the container engine", "API 1.41 or later", said)
    client = make(base_url=address, version=f"{spoken[0]}.{spoken[1]}", timeout=CALL_S)
    client.mount("http+docker://", one_pool(address))
    return client


def one_pool(address: str) -> Any:
    """The SDK's transport with one pool of connections for all calls.

    Its own keeps a pool for each address that was ever asked for, so that a thousand containers
    would hold a thousand connections, none of them used again.
    """
    from docker.transport import UnixHTTPAdapter

    class OnePool(UnixHTTPAdapter):  # type: ignore[misc]
        def get_connection(self, url: str, proxies: object = None) -> Any:
            return super().get_connection("", proxies)

    # The SDK expects its own form of a socket's address.
    place = address.replace("unix://", "http+unix://", 1)
    return OnePool(place, CALL_S, pool_connections=1, max_pool_size=2 * THREADS)


def _numbers(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def facts_of(info: Mapping[str, Any]) -> EngineFacts:
    """What of the engine's ``/info`` matters here."""
    return EngineFacts(
        version=str(info.get("ServerVersion", "?")),
        memory=bool(info.get("MemoryLimit")),
        swap=bool(info.get("SwapLimit")),
        pids=bool(info.get("PidsLimit")),
        cpu=bool(info.get("CpuCfsQuota")),
        cores=max(1, int(info.get("NCPU", 1))),
        heredocs=_major(str(info.get("ServerVersion", ""))) >= HEREDOCS_SINCE,
    )


def _major(version: str) -> int:
    number = version.partition(".")[0]
    return int(number) if number.isdigit() else 0
