"""Stands in for ``vllm serve``: its command line, key, health check, workers and completions.

It refuses options that vLLM's reference does not have, is healthy only after a while, demands the
key of its environment, and keeps a worker process in a session of its own, as vLLM keeps its
engine. ``--stand-in-fault`` (start, hang) makes it fail; as a program of its own it may be given
as ``stand_in_vllm.py serve MODEL ...`` too.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys

from aiohttp import web

from milo.testing.scripted_model import ScriptedServer, always


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("model")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    for name in ("served-model-name", "revision", "tool-call-parser", "reasoning-parser"):
        parser.add_argument(f"--{name}")
    for name in ("tensor-parallel-size", "max-model-len", "max-num-seqs", "seed"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--gpu-memory-utilization", type=float)
    for name in ("enable-auto-tool-choice", "enable-prompt-tokens-details"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--disable-uvicorn-access-log", action="store_true")
    parser.add_argument("--stand-in-fault", default="")
    return parser.parse_args(argv[1:] if argv[:1] == ["serve"] else argv)


async def main(arguments: argparse.Namespace) -> None:
    if arguments.stand_in_fault == "start":
        sys.exit("torch.OutOfMemoryError: CUDA out of memory.")
    worker = subprocess.Popen(["sleep", "600"], start_new_session=True)
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "none")
    told = f"worker {worker.pid} on GPU {gpus}"
    print(told, flush=True)
    scripted = ScriptedServer(always(told))
    loop = asyncio.get_running_loop()
    ready_at = loop.time() + 0.3
    key = os.environ["VLLM_API_KEY"]

    async def health(request: web.Request) -> web.Response:
        late = arguments.stand_in_fault == "hang" or loop.time() < ready_at
        return web.Response(status=503 if late else 200)

    async def complete(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {key}":
            return web.json_response({"error": "Unauthorized"}, status=401)
        return await scripted._complete(request)

    app = web.Application()
    app.router.add_get("/health", health)
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, arguments.host, arguments.port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(parse(sys.argv[1:])))
