"""The watchdog of a running command: wall-clock time, and what it has stored so far."""

from __future__ import annotations

import asyncio

from milo.core.task import Limits
from milo.rollout.folder import MAX_FILES, Folder
from milo.rollout.process import Child

STORAGE_CHECK_S = 1.0
MEBIBYTE = 1024 * 1024


async def until_end(child: Child, timeout_s: float, folder: Folder, limits: Limits) -> str:
    """Wait for the child's end or the first limit that fires: "", "time" or "storage".

    Wakes once a second to look at the storage; a command that ends sooner is looked at once,
    when its workspace is read.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while True:
        left = deadline - loop.time()
        if left <= 0:
            return "time"
        if await child.wait(min(left, STORAGE_CHECK_S)):
            return ""
        use = await asyncio.to_thread(folder.use)
        if use.size > limits.storage_mb * MEBIBYTE or use.entries > MAX_FILES:
            return "storage"
