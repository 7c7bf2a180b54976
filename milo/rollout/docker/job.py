"""Work of the engine that takes minutes, a build or a pull: its answer is read as it comes.

Nobody waits for it in vain: it has a time limit, and cutting the answer ends it in the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from milo.core.errors import MiloError
from milo.rollout.docker.engine import Engine

LINE_S = 3600.0
Line = Mapping[str, Any]


class Job:
    """One such request. `run` blocks, in a thread; `cancel` may be called from any other."""

    def __init__(
        self,
        api: Any,
        path: str,
        params: Mapping[str, Any],
        *,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._api = api
        self._path = path
        self._request = {"params": params, "data": data, "headers": headers or {}}
        self._answer: Any = None
        self._cut = False

    def run(self, note: Callable[[Line], None]) -> str:
        """Give every line of the answer to `note`; the fault that it tells of, or "".

        Raises what the SDK raises.
        """
        api, fault = self._api, ""
        answer = api._post(api._url(self._path), stream=True, timeout=LINE_S, **self._request)
        api._raise_for_status(answer)
        self._answer = answer
        if self._cut:
            self.cancel()
        try:
            for line in api._stream_helper(answer, decode=True):
                fault = str(line.get("error") or fault)
                note(line)
        finally:
            answer.close()
        return fault

    def cancel(self) -> None:
        """Cut the answer: the engine ends what nobody listens to any more."""
        self._cut = True
        if self._answer is not None:
            with suppress(OSError, AttributeError):
                self._answer.raw.shutdown()


async def finished(engine: Engine, job: Job, note: Callable[[Line], None], limit_s: float) -> str:
    """Wait for the job's end; its fault, or "".

    Raises `TimeoutError` at the limit, when the job has been ended, and `EngineError`.
    """
    work = asyncio.ensure_future(engine.ask(job.run, note))
    try:
        async with asyncio.timeout(limit_s):
            return await asyncio.shield(work)
    finally:
        if not work.done():
            job.cancel()
            with suppress(MiloError):
                await work
