"""Room for records: a full disk pauses a run, and does not end it.

Whoever would record waits here until there is room again. A margin is kept free of large records
for what can't wait, the lines of the ledger. What is written is written as a whole or not at all,
so a run that ends here after all loses nothing that was acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from milo.core.errors import DiskFull

T = TypeVar("T")

LOOK_S = 5.0
"""Between two looks at the disk."""
PATIENCE_S = 3600.0
"""How long the run waits; then it ends, and can be gone on with."""


class Room:
    """The room of one run directory. One owner, one event loop; many may wait.

    `shortage` says what the disk lacks ("" for nothing), `say` is told in words what is waited
    for, and "" once that is over.
    """

    def __init__(
        self,
        shortage: Callable[[], str],
        say: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._shortage = shortage
        self._say = say
        self._sleep = sleep
        self._short = False

    async def write(self, work: Callable[[], T]) -> T:
        """Do it at once, or as soon as there is room; it must be such that it can be repeated
        after a `DiskFull`. Raises that where there was none for an hour."""
        waited_s = 0.0
        while True:
            try:
                done = self._try(work)
            except DiskFull as full:
                if waited_s >= PATIENCE_S:
                    raise DiskFull(f"{full} (waited for {waited_s / 60:.0f} minutes)") from None
                self._short = True
                self._say(f"{full}: the run waits for room, and goes on by itself")
                await self._sleep(LOOK_S)
                waited_s += LOOK_S
                continue
            if self._short:
                self._short = False
                self._say("")
            return done

    def _try(self, work: Callable[[], T]) -> T:
        shortage = self._shortage()
        if shortage:
            raise DiskFull(shortage)
        return work()
