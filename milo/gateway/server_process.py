"""A model server as a child process: started, watched, ended with all its family."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from milo.core.errors import ModelError

POLL_S, HEALTH_S, STOP_S = 0.1, 5.0, 10.0
TAIL_BYTES = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """How one server is started: its command, what its environment adds, its address, its log,
    and how many seconds it may take until it is healthy."""

    name: str
    argv: Sequence[str]
    address: str
    log_path: Path
    start_s: float
    environ: Mapping[str, str] = field(default_factory=dict)


class ServerProcess:
    """Implements `core.servers.ModelServer` for a server that answers ``GET /health``.

    It runs in a process group of its own, because such servers start workers. One owner, one loop.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self._child: asyncio.subprocess.Process | None = None

    @property
    def base_url(self) -> str:
        """The OpenAI-compatible root."""
        return f"{self.launch.address}/v1"

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._child is not None and self._child.returncode is None

    @property
    def pid(self) -> int | None:
        """The process's id."""
        return self._child.pid if self._child is not None else None

    async def start(self) -> None:
        """Start and wait until it is healthy; raises `ModelError` with the end of its log."""
        await self.stop()
        self.launch.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.launch.log_path.open("ab") as log:
            try:
                self._child = await asyncio.create_subprocess_exec(
                    *self.launch.argv,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **self.launch.environ},
                    start_new_session=True,
                )
            except OSError as error:
                raise ModelError(f"{self.launch.name} can't be started: {error}") from error
        try:
            async with asyncio.timeout(self.launch.start_s):
                await self._until_healthy()
        except TimeoutError:
            await self.stop()
            raise ModelError(
                f"{self.launch.name} was not ready in {self.launch.start_s:g} s "
                f"(log {self.launch.log_path}): {log_end(self.launch.log_path)}"
            ) from None
        except BaseException:
            await self.stop()
            raise

    async def healthy(self) -> bool:
        """Whether ``/health`` answers 200."""
        return await is_healthy(self.launch.address)

    async def stop(self) -> None:
        """End the whole process group, by force where it takes too long; safe to call twice."""
        child, self._child = self._child, None
        if child is None:
            return
        _signal_group(child.pid, signal.SIGTERM)
        try:
            await asyncio.wait_for(child.wait(), STOP_S)
        except TimeoutError:
            pass
        finally:
            # Workers may outlive their leader, and so may the group of one that died by itself.
            _signal_group(child.pid, signal.SIGKILL)
        await child.wait()

    async def _until_healthy(self) -> None:
        """Waits for the health check to pass; a dead child or the caller's time-out ends it."""
        while not await self.healthy():
            if not self.alive:
                raise ModelError(
                    f"{self.launch.name} died at its start (log {self.launch.log_path}): "
                    f"{log_end(self.launch.log_path)}"
                )
            await asyncio.sleep(POLL_S)


async def is_healthy(address: str) -> bool:
    """Whether ``GET /health`` of a server answers 200."""
    timeout = aiohttp.ClientTimeout(total=HEALTH_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as client,
            client.get(f"{address}/health") as response,
        ):
            return response.status == 200
    except (aiohttp.ClientError, OSError, TimeoutError):
        return False


def log_end(path: Path) -> str:
    """The last words of a server's log."""
    raw = path.read_bytes() if path.exists() else b""
    return raw[-TAIL_BYTES:].decode(errors="replace").strip() or "(empty log)"


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
