"""Sharing a provider's rate limit: fairly among the callers of one node, and among nodes.

No node knows of the others, nor of other runs on the same key. Each keeps a window of calls in
flight that grows by one per window of successes and is halved when the provider refuses for its
rate limit: additive increase, multiplicative decrease, under which users of one bottleneck
converge to equal shares (Chiu and Jain, 1989). Within a node callers take turns.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

LIMITED = 429
MOST = 1024.0


class Pace:
    """The window of one gateway. Belongs to one event loop; `now` in seconds.

    A refusal of a call that began before the last halving says nothing new and halves no more.
    What is halved is what was really in flight. `first` is the window at the start, which by
    default binds nobody until the provider refuses.
    """

    def __init__(self, now: Callable[[], float], first: float = MOST) -> None:
        self._now = now
        self._window = first
        self._in_flight = 0
        self._halved_at = -1.0
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def window(self) -> float:
        """How many calls may be in flight."""
        return self._window

    @asynccontextmanager
    async def turn(self, scope: str) -> AsyncIterator[None]:
        """Wait for a place in the window; scopes that wait take turns."""
        await self._enter(scope)
        try:
            yield
        finally:
            self._in_flight -= 1
            self._wake()

    def told(self, status: int, began: float) -> None:
        """What the provider answered to a call that began at that time."""
        if status == LIMITED:
            if began > self._halved_at:
                reached = min(self._window, self._in_flight or self._window)
                self._window = max(1.0, reached / 2)
                self._halved_at = self._now()
        elif status < 300:
            self._window = min(MOST, self._window + 1.0 / self._window)

    async def _enter(self, scope: str) -> None:
        if self._in_flight < int(self._window) and not self._waiting:
            self._in_flight += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(scope, deque()).append(place)
        try:
            await place  # released by _wake, when a call ends; or the caller is cut
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._in_flight -= 1
                self._wake()
            else:
                self._leave(scope, place)
            raise

    def _leave(self, scope: str, place: asyncio.Future[None]) -> None:
        queue = self._waiting.get(scope)
        if queue is not None and place in queue:
            queue.remove(place)
            if not queue:
                del self._waiting[scope]

    def _wake(self) -> None:
        """Let in whoever fits, one of each scope in turn."""
        while self._waiting and self._in_flight < int(self._window):
            scope, queue = next(iter(self._waiting.items()))
            place = queue.popleft()
            del self._waiting[scope]
            if queue:
                self._waiting[scope] = queue  # to the end of the line
            if not place.done():
                self._in_flight += 1
                place.set_result(None)
