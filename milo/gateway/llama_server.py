"""The embedded model: a llama.cpp server (xllamacpp) in a child process.

The child keeps a crash and its threads away from us; `server_process` starts and ends it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milo.gateway.server_process import LOOPBACK, Launch, ServerProcess

START_S = 120.0


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


def embedded_server(path: Path, settings: ServerSettings, log_path: Path) -> ServerProcess:
    """The server of a GGUF file, not started yet."""
    options = {
        "--path": str(path),
        "--context": str(settings.context),
        "--parallel": str(settings.parallel),
        "--threads": str(settings.threads or os.cpu_count() or 1),
        "--prompt-cache-mb": str(settings.prompt_cache_mb),
    }
    flat = [part for pair in options.items() for part in pair]

    def argv(port: int) -> Sequence[str]:
        return [sys.executable, "-m", "milo.gateway.llama_server", *flat, "--port", str(port)]

    launch = Launch(
        name=f"the embedded model {path.name}", argv=argv, log_path=log_path, start_s=START_S
    )
    return ServerProcess(launch)


def main(argv: list[str]) -> int:
    """The child: serve until it is ended."""
    arguments = _parser().parse_args(argv)
    if not Path(arguments.path).is_file():
        print(f"model file {arguments.path}: expected a GGUF file, found none", file=sys.stderr)
        return 1
    # The server's own end waits for its slots; nothing of it needs saving.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    server = _serve(arguments)
    print(f"serving {arguments.path} at {server.listening_address}", flush=True)
    while True:
        signal.pause()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="milo.gateway.llama_server")
    parser.add_argument("--path", required=True)
    for name in ("port", "context", "parallel", "threads", "prompt-cache-mb"):
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser


def _serve(arguments: argparse.Namespace) -> Any:
    """An xllamacpp server, listening and loaded; it runs as long as it is referred to."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = arguments.path
    params.hostnames = [LOOPBACK]
    params.port = arguments.port
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
