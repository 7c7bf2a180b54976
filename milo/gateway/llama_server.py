"""The embedded model: a llama.cpp server (xllamacpp) in a child process, and its keeper.

The child keeps a crash and its threads away from us. It prints its address, and ends when its
standard input closes or its parent dies.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milo.core.errors import ModelError
from milo.gateway.server_process import is_healthy, log_end

START_S = 120.0
STOP_S = 5.0
LEAST_MEMORY_MB = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """How the embedded model is served.

    `context` is tokens per request, `parallel` requests at once, `threads` those of the whole
    server (0 for the machine's cores), `prompt_cache_mb` the memory in which prompts are kept
    beyond the slots: harnesses share their prompts' beginnings, and reading them again costs as
    much as writing as many tokens.
    """

    context: int = 4096
    parallel: int = 4
    threads: int = 0
    prompt_cache_mb: int = 1024


class EmbeddedServer:
    """Starts, watches and stops one child server. Belongs to one owner on one event loop."""

    def __init__(self, path: Path, settings: ServerSettings, log_path: Path) -> None:
        self.path = path
        self.settings = settings
        self.log_path = log_path
        self._address = ""
        self._child: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        """``http://127.0.0.1:PORT``; "" before the start."""
        return self._address

    @property
    def base_url(self) -> str:
        """The OpenAI-compatible root."""
        return f"{self._address}/v1"

    @property
    def alive(self) -> bool:
        """Whether the child runs."""
        return self._child is not None and self._child.returncode is None

    @property
    def pid(self) -> int | None:
        """The child's process id."""
        return self._child.pid if self._child is not None else None

    async def start(self, environ: Mapping[str, str] | None = None) -> None:
        """Start and wait until the model answers its health check.

        `environ` is the child's environment beside what it inherits. Raises `ModelError`, with
        the end of the log, where the weights can't be loaded or the time is over.
        """
        if not self.path.is_file():
            raise ModelError(f"model file {self.path}: expected a GGUF file, found none")
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._child = await asyncio.create_subprocess_exec(
                *self._command(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**os.environ, **(environ or {})},
            )
        try:
            async with asyncio.timeout(START_S):
                self._address = await self._read_address()
                await self._until_healthy()
        except TimeoutError:
            await self.stop()
            raise ModelError(f"{self.path.name} was not ready in {START_S:g} s") from None
        except BaseException:
            await self.stop()
            raise

    async def healthy(self) -> bool:
        """Whether the server says that it is ready."""
        return await is_healthy(self._address)

    async def stop(self) -> None:
        """End the child: by closing its input, then by force. Safe to call twice."""
        child, self._child = self._child, None
        if child is None:
            return
        if child.stdin is not None:
            child.stdin.close()
        try:
            await asyncio.wait_for(child.wait(), STOP_S)
        except TimeoutError:
            child.kill()
            await child.wait()

    def _command(self) -> list[str]:
        settings = self.settings
        options = {
            "--path": str(self.path),
            "--context": str(settings.context),
            "--parallel": str(settings.parallel),
            "--threads": str(settings.threads or os.cpu_count() or 1),
            "--prompt-cache-mb": str(settings.prompt_cache_mb),
        }
        flat = [part for pair in options.items() for part in pair]
        return [sys.executable, "-m", "milo.gateway.llama_server", *flat]

    async def _read_address(self) -> str:
        assert self._child is not None and self._child.stdout is not None
        line = (await self._child.stdout.readline()).decode().strip()
        if not line.startswith("http"):
            await self._child.wait()
            raise ModelError(
                f"{self.path.name} could not be served (log {self.log_path}): "
                f"{log_end(self.log_path)}"
            )
        return line

    async def _until_healthy(self) -> None:
        """Waits for the health check to pass; a dead child or the caller's time-out ends it."""
        while not await self.healthy():
            if not self.alive:
                raise ModelError(f"the model's server died at its start: {log_end(self.log_path)}")
            await asyncio.sleep(0.05)


def main(argv: list[str]) -> int:
    """The child: serve until standard input closes."""
    arguments = _parser().parse_args(argv)
    _die_with_parent()
    server = _serve(arguments)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    sys.stdout.flush()
    # The server's own shutdown waits for its slots; nothing of it needs saving.
    os._exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="milo.gateway.llama_server")
    parser.add_argument("--path", required=True)
    for name in ("context", "parallel", "threads", "prompt-cache-mb"):
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser


def _serve(arguments: argparse.Namespace) -> Any:
    """An xllamacpp server, listening and loaded; it runs as long as it is referred to."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = arguments.path
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = arguments.parallel
    params.n_ctx = arguments.context * arguments.parallel
    params.cpuparams.n_threads = arguments.threads
    params.cpuparams_batch.n_threads = arguments.threads
    params.cache_prompt = True
    params.cache_ram_mib = arguments.prompt_cache_mb
    params.cont_batching = True
    # Of 9,143 prompt tokens of 24 calls with three shared system prompts (135M, 4 at once, one
    # run each) 8,622 came from the cache; 7,560 without saving idle slots to the prompt cache,
    # 7,552 with one KV buffer for all slots.
    params.cache_idle_slots = True
    params.kv_unified = False
    params.ui = False
    params.fit_params = False
    return xllamacpp.Server(params)


def _die_with_parent() -> None:
    """Ask Linux to kill us with our parent; elsewhere the closing of standard input does."""
    if sys.platform == "linux":
        parent_death_signal = 1
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
