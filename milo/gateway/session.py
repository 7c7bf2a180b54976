"""One caller's right to the model: its caps, its meter, its record (SPEC §6).

A call is a request that was forwarded; only calls are counted and numbered. A refused request
stands in the record with no usage. Tokens are reserved before a call and settled after it, so a
session exceeds its cap by at most one call. Once a cap has fired, the session stays capped.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from milo.core.attempt import Usage
from milo.core.evidence import Exchange
from milo.core.ports import Caps, Emit, SessionReport
from milo.gateway.blame import answer
from milo.gateway.formats import BadRequest
from milo.gateway.line import Ask, Line, Reply, faulted, out_of_time
from milo.gateway.paying import Paid, prompt_tokens, reservation
from milo.gateway.pins import Pinned, pin
from milo.gateway.prices import Price, dollars
from milo.gateway.relay import Relay
from milo.gateway.tokens import count_tokens
from milo.gateway.wire import error_body, public_body, redact

REFUSALS_KEPT = 32
CUT_STATUS = 499


class Session:
    """A `ModelSession`. Calls may be concurrent on one event loop; `ask` is the way in-process.

    `on_close` is told once, before calls in flight are cut. `scope` may be changed: it is that of
    the calls made from then on, which are numbered anew.
    """

    def __init__(
        self,
        line: Line,
        scope: str,
        caps: Caps,
        deadline_s: float,
        token: str = "",
        on_close: Callable[[Session], None] | None = None,
    ) -> None:
        self.token = token
        self.scope = scope
        self._line = line
        self._caps = caps
        self._deadline = line.now() + deadline_s
        self._on_close = on_close
        self._records: list[Exchange | None] = []
        self._refusals = 0
        self._calls: set[asyncio.Task[Reply]] = set()
        self._settling: set[asyncio.Task[None]] = set()
        self._usage = Usage()
        self._under: list[str] = []
        self._numbers = Counter[str]()
        self._made = 0
        self._reserved = 0
        self._capped = ""
        self._fault = ""
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the session was closed; a closed one forwards nothing."""
        return self._closed

    def report_in(self, scope: str) -> SessionReport:
        """What came of its calls under a scope; calls in flight are not in it yet."""
        mine = zip(self._records, self._under, strict=True)
        exchanges = tuple(e for e, under in mine if e is not None and under == scope)
        return SessionReport(usage=sum((e.usage for e in exchanges), Usage()), exchanges=exchanges)

    @property
    def pinned_model(self) -> str:
        """The model's name as callers see it."""
        return self._line.pins.model

    @property
    def recorded(self) -> tuple[Exchange, ...]:
        """What has been recorded so far; calls in flight are not in it yet."""
        return tuple(record for record in self._records if record is not None)

    async def ask(
        self,
        asked: Mapping[str, object],
        *,
        emit: Emit | None = None,
        noted: tuple[str, ...] = (),
    ) -> Reply:
        """Answer a chat-completions request under the session's pins and caps.

        With `emit` the chunks of the answer are handed over as they come, where the upstream
        streams; `noted` names what a translation into chat completions left out. Never raises but
        for cancellation: every failure is a reply with its HTTP status.
        """
        if self._closed:
            return _refusal(401, "the session is closed", "invalid_api_key")
        try:
            pinned = pin(asked, self._line.pins, self._caps.output_tokens_per_call)
        except BadRequest as error:
            return self.refuse(asked, 400, str(error), "invalid_request", error.param)
        pinned = replace(pinned, names=tuple(sorted({*pinned.names, *noted})))
        self._capped = self._capped or self._cap_in_the_way()
        if self._capped:
            return self.refuse(asked, 429, f"cap reached: {self._capped}", "budget_exceeded")
        relay = None if emit is None else Relay(emit, self._line.secrets)
        return await self._forward(asked, pinned, relay)

    def refuse(
        self,
        asked: Mapping[str, object],
        status: int,
        message: str,
        code: str,
        param: str | None = None,
    ) -> Reply:
        """Answer without a call, and record it; after a few such records they are only counted."""
        reply = _refusal(status, message, code, param)
        self._refusals += 1
        if self._refusals <= REFUSALS_KEPT:
            record = Exchange(request=asked, response=reply.body, status=status, seconds=0.0)
            self._records.append(record)
            self._under.append(self.scope)
        return reply

    async def close(self) -> SessionReport:
        """Cut calls in flight and report; closing again gives the same report."""
        if not self._closed:
            self._closed = True
            if self._on_close is not None:
                self._on_close(self)
        for task in tuple(self._calls):
            task.cancel()
        while self._calls:  # each ends by its cancellation, and leaves the set once recorded
            await asyncio.wait(tuple(self._calls))
            await asyncio.sleep(0)
        await asyncio.gather(*self._settling)
        return SessionReport(
            usage=self._usage,
            exchanges=self.recorded,
            capped=self._capped,
            fault=self._fault,
        )

    def _cap_in_the_way(self) -> str:
        caps = self._caps
        if caps.calls is not None and self._made >= caps.calls:
            return f"{caps.calls} calls"
        if caps.tokens is not None and self._usage.tokens + self._reserved >= caps.tokens:
            return f"{caps.tokens} tokens"
        return ""

    async def _forward(
        self, asked: Mapping[str, object], pinned: Pinned, relay: Relay | None
    ) -> Reply:
        may_cost = reservation(pinned)
        nth, place, reserve = self._numbers[self.scope], len(self._records), may_cost.tokens
        paid = Paid(self._line, self.scope, may_cost)
        self._made += 1
        self._reserved += reserve
        self._numbers[self.scope] += 1
        self._records.append(None)
        self._under.append(self.scope)
        began = self._line.now()
        task = asyncio.ensure_future(self._call(pinned, nth, relay, paid))
        self._calls.add(task)
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
            self._calls.discard(task)
            self._reserved -= reserve
            reply = _result(task, pinned, relay, self._line.price)
            if not paid.granted:
                reply = replace(reply, usage=Usage())  # nothing was sent
            self._settle(reply, paid)
            self._records[place] = Exchange(
                request=asked,
                response=reply.body,
                status=reply.status,
                seconds=self._line.now() - began,
                usage=reply.usage,
                pinned=pinned.names,
            )
        return reply

    async def _call(self, pinned: Pinned, nth: int, relay: Relay | None, paid: Paid) -> Reply:
        """The process boundary: an error of whoever pays is a fault, never the harness's."""
        ask = Ask(
            request=pinned.request,
            scope=self.scope,
            nth=nth,
            deadline=self._deadline,
            relay=relay,
        )
        try:
            unpaid = await paid.promise(self._deadline - self._line.now())
            reply = unpaid or await answer(self._line, ask)
        except Exception as error:
            text = redact(f"{type(error).__name__}: {error}", self._line.secrets)
            return faulted(f"gateway error: {text}")
        return replace(reply, body=public_body(reply.body, self.pinned_model))

    def _settle(self, reply: Reply, paid: Paid) -> None:
        self._usage += reply.usage
        self._fault = self._fault or reply.fault
        settling = asyncio.ensure_future(paid.settle(reply.usage))
        self._settling.add(settling)
        settling.add_done_callback(self._settling.discard)


def _result(
    task: asyncio.Task[Reply], pinned: Pinned, relay: Relay | None, price: Price | None
) -> Reply:
    """The reply of an ended call, or of one that was cut; with what those tries must at least
    have cost of which the provider told nothing."""
    ended = task.done() and not task.cancelled()
    reply = task.result() if ended else replace(out_of_time(), status=CUT_STATUS, untold=1)
    if relay is not None:
        relay.close()
    if not reply.untold:
        return reply
    usage = Usage(
        uncached_input=prompt_tokens(pinned) * reply.untold,
        output=count_tokens(relay.text) if relay is not None and not reply.ok else 0,
        estimated=True,
    )
    usage = replace(usage, dollars=dollars(usage, price))
    return replace(reply, usage=reply.usage + usage)


def _refusal(status: int, message: str, code: str, param: str | None = None) -> Reply:
    return Reply(status=status, body=error_body(message, code, param), usage=Usage())
