"""What a call may cost, what it did cost, and the purse that pays for it (SPEC §4, end)."""

from __future__ import annotations

import json
import secrets
from contextlib import suppress

from milo.core.attempt import Usage
from milo.core.budget import Spend
from milo.core.calls import SPENT
from milo.core.errors import BudgetSpent, MiloError
from milo.gateway.line import Line, Reply, out_of_time, within
from milo.gateway.pins import LIMITS, Pinned
from milo.gateway.prices import dollars
from milo.gateway.tokens import tokens_of_bytes
from milo.gateway.wire import error_body

REPLY_TOKENS = 4096
"""What a reply is taken for that nothing limits."""


def reservation(pinned: Pinned) -> Usage:
    """The tokens that a call may take: its prompt by size, and its output limit."""
    limits = [value for key in LIMITS if isinstance(value := pinned.request.get(key), int)]
    prompt = tokens_of_bytes(prompt_bytes(pinned))
    return Usage(uncached_input=prompt, output=max(limits, default=REPLY_TOKENS), calls=1)


def prompt_bytes(pinned: Pinned) -> int:
    """The size of what the model is given to read, as JSON."""
    return len(json.dumps(pinned.request.get("messages"), default=str))


class Paid:
    """One call on the purse: promised before it, settled after. One owner, one use."""

    def __init__(self, line: Line, scope: str, may_cost: Usage) -> None:
        self._line = line
        self._scope = scope
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
        wait = purse.reserve_call(self._name, self._line.role, self._scope, self._amount)
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


def spent_out(words: str) -> Reply:
    """The reply to a harness whose run has no money left: no fault of the harness's."""
    body = error_body(f"the run's budget is spent: {words}", "budget_exceeded")
    return Reply(status=429, body=body, usage=Usage(), fault=SPENT + words)
