"""Locks between the processes of one user on this host, waited for without a thread.

They are files; whoever dies lets go of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

LOOK_S = 0.2


@contextmanager
def locked_now(path: Path) -> Iterator[bool]:
    """Hold a lock if it is free; whether it was."""
    lock = _taken(path)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.release()


@asynccontextmanager
async def locked(*paths: Path) -> AsyncIterator[None]:
    """Hold one of some locks, whichever is free first; waits until one is let go."""
    while True:
        for path in paths:
            lock = _taken(path)
            if lock is not None:
                try:
                    yield
                finally:
                    lock.release()
                return
        await asyncio.sleep(LOOK_S)


def _taken(path: Path) -> BaseFileLock | None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock: BaseFileLock = FileLock(path, is_singleton=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return None
    return lock
