"""Work that takes no slots, and is cut with the search all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from milo.runtime.parts import DispatcherPort, SearchStopped

GRACE_S = 60.0
"""How long the orchestrator may still take to answer once search work is cut."""


async def unless_stopped(
    work: Coroutine[Any, Any, None], dispatcher: DispatcherPort, grace_s: float = 0.0
) -> None:
    """Do the work; raises `SearchStopped` where search work is cut meanwhile, or so many seconds
    before it is done."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(dispatcher.stopped())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done() and grace_s:
            await asyncio.wait({working}, timeout=grace_s)
        if not working.done():
            raise SearchStopped(await stopping)
        await working
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)
