"""Whose doing a provider's error is: the provider's, or the request's that it was given.

Providers answer some requests with the statuses of an outage although they are well: a grammar
that breaks their parser, a picture for a model that reads none, words that a filter stops. Taken
for outages, such requests would let a harness have its attempts counted as missing. So the
suspected request is made once more between two small ones that any model answers. A provider that
answers both and fails between them is well, and the harness is told that its request is refused.
"""

from __future__ import annotations

from dataclasses import replace

from milo.core.attempt import Usage
from milo.gateway.line import OUT_OF_TIME, Ask, Line, Reply, call, faulted, try_once
from milo.gateway.paying import CHECK, CHECK_TOKENS, Paid
from milo.gateway.wire import error_body, redact

REFUSED = "request_refused"
REFUSED_STATUS = 400
SMALL = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}


async def answer(line: Line, ask: Ask) -> Reply:
    """Make one call as `line.call` does; what the request itself provoked is no fault.

    Never raises but for cancellation: an error of ours that comes with one request, and with no
    other, is the request's doing too.
    """
    reply = await _guarded(line, ask)
    if not reply.answered or _begun(ask) or not await _is_well(line, ask):
        return reply
    again = await _guarded(line, ask, once=True)
    again = replace(again, untold=reply.untold + again.untold)
    if not again.answered or _begun(ask) or not await _is_well(line, ask):
        return again
    body = error_body(f"the provider refuses this request: {again.fault}", REFUSED)
    return replace(again, status=REFUSED_STATUS, body=body, fault="", answered=0, lasting=False)


def _begun(ask: Ask) -> bool:
    """What the caller has begun to see can't be made again."""
    return ask.relay is not None and ask.relay.started


async def _guarded(line: Line, ask: Ask, *, once: bool = False) -> Reply:
    """The process boundary: what we did not foresee of a request is recorded as a fault."""
    try:
        return await (try_once(line, ask) if once else call(line, ask))
    except Exception as error:
        text = redact(f"{type(error).__name__}: {error}", line.secrets)
        return faulted(f"gateway error: {text}", answered=500)


async def _is_well(line: Line, ask: Ask) -> bool:
    """Whether the provider answers a small request, paid as any other, in the time that is left.

    An answer that finds fault with it is one too: it comes from a provider that works.
    """
    left_s = ask.deadline - line.now()
    if left_s <= 0:
        return False
    paid = Paid(line, CHECK, Usage(uncached_input=CHECK_TOKENS, output=CHECK_TOKENS))
    cost = Usage()
    try:
        if await paid.promise(left_s) is not None:
            return False
        small = Ask(request=SMALL, scope=CHECK, nth=0, deadline=ask.deadline)
        reply = await _guarded(line, small, once=True)
        cost = reply.usage
        return not reply.fault and reply.status != OUT_OF_TIME
    finally:
        await paid.settle(cost)
