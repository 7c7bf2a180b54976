"""A model server as a child process: started, watched, ended with all its family and its owner.

Every server that a run starts (vLLM, the embedded llama.cpp) is one of these, under a keeper
(`milo.gateway.keeper`) that survives its owner just long enough to end the server.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from milo.core.errors import ModelError

POLL_S, HEALTH_S, STOP_S = 0.1, 5.0, 15.0
TAIL_BYTES = 2000
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """How one server is started: its command for a port, the address of this node that it listens
    on, its log, what its environment adds, and how many seconds it may take until it is healthy.

    With `key_variable` each start gives the server a new key in its environment, which it demands
    of its callers.
    """

    name: str
    argv: Callable[[int], Sequence[str]]
    log_path: Path
    start_s: float
    host: str = LOOPBACK
    environ: Mapping[str, str] = field(default_factory=dict)
    key_variable: str = ""


class ServerProcess:
    """Implements `core.servers.ModelServer` for a server that answers ``GET /health``.

    Each start takes a port that is free at that moment. One owner, one event loop.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self._address = ""
        self._key = ""
        self._child: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        """``http://HOST:PORT``; "" before the first start."""
        return self._address

    @property
    def base_url(self) -> str:
        """The OpenAI-compatible root."""
        return f"{self._address}/v1"

    @property
    def api_key(self) -> str:
        """What the server demands of its callers; "" where it demands nothing."""
        return self._key

    @property
    def alive(self) -> bool:
        """Whether the server runs."""
        return self._child is not None and self._child.returncode is None

    @property
    def pid(self) -> int | None:
        """The keeper's process id."""
        return self._child.pid if self._child is not None else None

    async def start(self) -> None:
        """Start and wait until it is healthy; raises `ModelError` with the end of its log."""
        await self.stop()
        launch = self.launch
        launch.log_path.parent.mkdir(parents=True, exist_ok=True)
        port = free_port(launch.host)
        self._address = f"http://{launch.host}:{port}"
        self._key = secrets.token_urlsafe(24) if launch.key_variable else ""
        with launch.log_path.open("ab") as log:
            self._child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "milo.gateway.keeper", *launch.argv(port)),
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **launch.environ, **self._secret()},
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(launch.start_s):
                await self._until_healthy()
        except TimeoutError:
            await self.stop()
            raise ModelError(
                f"{launch.name} was not ready in {launch.start_s:g} s: {log_end(launch.log_path)}"
            ) from None
        except BaseException:
            await self.stop()
            raise

    async def healthy(self) -> bool:
        """Whether ``/health`` answers 200."""
        return await is_healthy(self._address)

    async def stop(self) -> None:
        """End the server and its family, by force where it takes too long; safe to call twice."""
        child, self._child = self._child, None
        if child is None:
            return
        if child.stdin is not None:
            child.stdin.close()
        try:
            await asyncio.wait_for(child.wait(), STOP_S)
        except TimeoutError:
            pass
        finally:
            # A keeper that was killed left its group behind.
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        await child.wait()

    def _secret(self) -> Mapping[str, str]:
        return {self.launch.key_variable: self._key} if self._key else {}

    async def _until_healthy(self) -> None:
        """Waits for the health check to pass; a dead child or the caller's time-out ends it."""
        while not await self.healthy():
            if not self.alive:
                raise ModelError(
                    f"{self.launch.name} died at its start: {log_end(self.launch.log_path)}"
                )
            await asyncio.sleep(POLL_S)


def free_port(host: str) -> int:
    """A port of this node that nobody listens on now."""
    with socket.create_server((host, 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


async def is_healthy(address: str) -> bool:
    """Whether ``GET /health`` of a server answers 200."""
    timeout = aiohttp.ClientTimeout(total=HEALTH_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as client,
            client.get(f"{address}/health") as response,
        ):
            return response.status == 200
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return False


def log_end(path: Path) -> str:
    """The last words of a server's log."""
    raw = path.read_bytes() if path.exists() else b""
    return raw[-TAIL_BYTES:].decode(errors="replace").strip() or "(empty log)"
