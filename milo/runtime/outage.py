"""An outage of a model's provider is waited out: it says nothing about whoever made the call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from milo.core.errors import ModelUnavailable

T = TypeVar("T")

FIRST_S, MOST_S = 5.0, 120.0
"""The first wait, and the longest: each is twice the one before."""
PATIENCE_S, LASTING_PATIENCE_S = 3600.0, 600.0
"""How long is waited in all, and where waiting alone will not help (a key, a quota): that leaves
time to mend it while the run lives."""


class ModelGone(ModelUnavailable):
    """A provider that was waited for in vain; the run can be gone on with once it is back."""


class Outage:
    """Calls of one scope to one model. `say` is told what is waited for, and "" once it is over."""

    def __init__(
        self,
        say: Callable[[str], Awaitable[None]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._say = say
        self._sleep = sleep

    async def outlast(self, call: Callable[[], Awaitable[T]]) -> T:
        """The answer of a call, made again while its model is unavailable.

        Ended by an answer, by the caller's cancellation (a run whose time is over), or by
        `ModelGone`.
        """
        waited_s, pause_s, told = 0.0, FIRST_S, False
        try:
            while True:
                try:
                    return await call()
                except ModelGone:
                    raise
                except ModelUnavailable as down:
                    if waited_s >= (LASTING_PATIENCE_S if down.lasting else PATIENCE_S):
                        words = f"{down} (asked again for {waited_s / 60:.0f} minutes)"
                        raise ModelGone(words, lasting=down.lasting) from None
                    told = True
                    await self._say(f"{down}; asked again in {pause_s:g} s")
                await self._sleep(pause_s)
                waited_s, pause_s = waited_s + pause_s, min(2 * pause_s, MOST_S)
        finally:
            if told:
                await self._say("")
