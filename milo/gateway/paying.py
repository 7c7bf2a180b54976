"""What a call may cost, what it did cost, and the purse that pays for it (SPEC §4, end)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress

from milo.core.attempt import Usage
from milo.core.budget import Spend
from milo.core.calls import SPENT
from milo.core.errors import BudgetSpent, MiloError
from milo.gateway.line import Line, Reply, out_of_time, within
from milo.gateway.pins import LIMITS, Pinned
from milo.gateway.prices import dollars
from milo.gateway.tokens import tokens_of_bytes
from milo.gateway.usage import READ_BY_MODEL, without_data
from milo.gateway.wire import error_body

CHECK, CHECK_TOKENS, CHECK_S = "check", 16, 600.0
PICTURE_TOKENS = 1600
REPLY_TOKENS = 4096
"""What a reply is taken for that nothing limits."""


def reservation(pinned: Pinned) -> Usage:
    """The tokens that a call may take: its prompt by size, and its output limit."""
    limits = [value for key in LIMITS if isinstance(value := pinned.request.get(key), int)]
    output = max(limits, default=REPLY_TOKENS)
    return Usage(uncached_input=prompt_tokens(pinned), output=output, calls=1)


def prompt_tokens(pinned: Pinned) -> int:
    """About how many tokens the model is given to read: by size, and so many a picture."""
    told = [pinned.request[key] for key in READ_BY_MODEL if pinned.request.get(key)]
    size = sum(len(json.dumps(without_data(part), default=str)) for part in told)
    return tokens_of_bytes(size) + PICTURE_TOKENS * sum(_pictures(part) for part in told)


def _pictures(value: object) -> int:
    if isinstance(value, Mapping):
        return sum(_pictures(inner) for inner in value.values())
    if isinstance(value, list):
        return sum(_pictures(inner) for inner in value)
    return int(isinstance(value, str) and value.startswith("data:"))


class Paid:
    """One call on the purse: promised before it, settled after. One owner, one use."""

    def __init__(self, line: Line, scope: str, may_cost: Usage) -> None:
        self._line = line
        self.scope = scope
        self._name = secrets.token_hex(12)
        self._amount = Spend(tokens=may_cost.tokens, dollars=dollars(may_cost, line.price) or 0.0)
        self._asked = False
        self.granted = False
        """Whether the call may have gone to the provider."""

    async def promise(self, seconds: float) -> Reply | None:
        """Wait for money and a turn at most so long; the answer to the caller where there is
        none."""
        purse = self._line.purse
        if purse is None:
            self.granted = True
            return None
        self._asked = True
        wait = purse.reserve_call(self._name, self._line.role, self.scope, self._amount)
        try:
            await within(wait, seconds)
        except TimeoutError:
            return out_of_time()
        except BudgetSpent as spent:
            self._asked = False  # nothing was promised
            return spent_out(str(spent))
        self.granted = True
        return None

    async def settle(self, usage: Usage) -> None:
        """What the call cost in place of its promise; nothing where none was asked for.

        Where the purse is gone, so is the run: its next owner finds the call unsettled.
        """
        if self._line.purse is not None and self._asked:
            with suppress(MiloError):
                await self._line.purse.settle_call(self._name, Spend.of(usage))


async def checked(line: Line) -> None:
    """Prove that the line's model answers, by one call that is paid as any other; raises
    `ModelError`. A run that can't pay for it calls no model either: nothing is checked."""
    paid, cost = Paid(line, CHECK, Usage(uncached_input=CHECK_TOKENS, output=CHECK_TOKENS)), Usage()
    try:
        if await paid.promise(CHECK_S) is None:
            cost = await line.upstream.check()
    finally:
        await paid.settle(cost)


def spent_out(words: str) -> Reply:
    """The reply to a harness whose run has no money left: no fault of the harness's."""
    body = error_body(f"the run's budget is spent: {words}", "budget_exceeded")
    return Reply(status=429, body=body, usage=Usage(), fault=SPENT + words)
