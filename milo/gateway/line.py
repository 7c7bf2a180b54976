"""A pinned upstream with its retries: one call in, one reply out, never later than its deadline.

A reply's `fault` says that the provider failed us ("" where it did not): the harness is answered
with HTTP 503 and the attempt becomes a missing one. What the provider refuses because of the
request itself is the harness's and is passed on as it is; where its status does not tell the two
apart, `blame` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import TypeVar

import numpy as np

from milo.core.attempt import Usage
from milo.core.calls import Purse
from milo.core.errors import ModelError, ReplayMiss
from milo.core.ports import Completion, StreamingUpstream, Upstream
from milo.gateway.pace import Pace
from milo.gateway.pins import Pins
from milo.gateway.prices import Price
from milo.gateway.relay import Relay
from milo.gateway.wire import (
    answer_without_secrets,
    error_body,
    error_code,
    error_message,
    redact,
    redact_body,
)

T = TypeVar("T")
OURS = frozenset({401, 402, 403, 404})
PASSING = frozenset({408, 409, 425, 429})
UNAVAILABLE, DEADLINE = "provider_unavailable", "deadline_exceeded"
FINAL_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", UNAVAILABLE})
REPLAY_MISS = "replay miss: "
OUT_OF_TIME = 504


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """When to give up. Seconds; `tries` counts the first one. Waits double, with jitter."""

    tries: int = 6
    first_wait_s: float = 0.5
    longest_wait_s: float = 20.0
    call_timeout_s: float = 300.0

    def wait_s(self, failed: int, rng: np.random.Generator) -> float:
        """How long to wait after the `failed`-th failure: half to all of the doubled wait."""
        full = min(self.longest_wait_s, self.first_wait_s * 2.0 ** (failed - 1))
        return full * float(rng.uniform(0.5, 1.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A pinned upstream. `rng` (owned by the line) gives the jitter, `sleep` and `now` the time;
    `secrets` are taken out of everything that the provider says; `price` is for calls whose
    provider told no usage, because they were cut (None where it is unknown); `pace`, where there
    is one, shares the provider's rate limit; `purse`, where there is one, pays every call for
    `role`."""

    upstream: Upstream
    pins: Pins
    rng: np.random.Generator
    policy: Policy = Policy()
    secrets: tuple[str, ...] = ()
    price: Price | None = None
    pace: Pace | None = None
    purse: Purse | None = None
    role: str = "target"
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = monotonic


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What one call came to, as the caller sees it; `fault` is the provider's failure.

    `answered` is the HTTP status of a provider that failed us in an answer (0 where there was
    none): it may be the request's own doing. `lasting` says that waiting alone won't mend it.
    `untold` counts the tries that were cut or broke off under way: the provider may charge for
    each, and told the usage of none.
    """

    status: int
    body: Mapping[str, object]
    usage: Usage
    fault: str = ""
    answered: int = 0
    lasting: bool = False
    untold: int = 0

    @property
    def ok(self) -> bool:
        """Whether it is a completion."""
        return self.status == 200


@dataclass(frozen=True, kw_only=True, slots=True)
class _Try:
    """One try: a final reply, or the reason to try again, and for how long the provider wants to
    be left alone. `untold` as in `Reply`."""

    reply: Reply | None = None
    problem: str = ""
    wait_s: float = 0.0
    untold: bool = False
    answered: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """One call to make: the `nth` of its scope, until `deadline` (on the line's `now`), streamed
    where there is a relay."""

    request: Mapping[str, object]
    scope: str
    nth: int
    deadline: float
    relay: Relay | None = None


async def call(line: Line, ask: Ask) -> Reply:
    """Make one call, tried again while the deadline and the policy allow it.

    What the caller has begun to see is not tried again.
    """
    last, untold = _Try(), 0
    for failed in range(1, line.policy.tries + 1):
        left = ask.deadline - line.now()
        if left <= 0:
            break
        tried = await _try_once(line, ask, left)
        if tried.reply is not None:
            return replace(tried.reply, untold=untold)
        last, untold = tried if tried.problem else last, untold + tried.untold
        wait = max(tried.wait_s, line.policy.wait_s(failed, line.rng))
        begun = ask.relay is not None and ask.relay.started
        if not tried.problem or begun or failed == line.policy.tries:
            break
        if line.now() + wait >= ask.deadline:
            break
        await line.sleep(wait)
    return replace(_given_up(last), untold=untold)


async def try_once(line: Line, ask: Ask) -> Reply:
    """Make one call without trying again."""
    left = ask.deadline - line.now()
    tried = await _try_once(line, ask, left) if left > 0 else _Try()
    return replace(tried.reply or _given_up(tried), untold=int(tried.untold))


def _given_up(last: _Try) -> Reply:
    return faulted(last.problem, answered=last.answered) if last.problem else out_of_time()


def faulted(problem: str, *, answered: int = 0, lasting: bool = False) -> Reply:
    """The reply to a harness whose provider failed."""
    return Reply(
        status=503,
        body=error_body(f"the model is unavailable: {problem}", UNAVAILABLE),
        usage=Usage(calls=1),
        fault=problem,
        answered=answered,
        lasting=lasting,
    )


def out_of_time() -> Reply:
    """The reply to a harness whose own time is over; no fault of the provider's."""
    body = error_body("the session's time is over", DEADLINE)
    return Reply(status=OUT_OF_TIME, body=body, usage=Usage(calls=1))


async def _try_once(line: Line, ask: Ask, left: float) -> _Try:
    limit, entered = min(left, line.policy.call_timeout_s), asyncio.Event()
    try:
        done = await within(_in_turn(line, ask, entered), limit)
    except TimeoutError:
        if not entered.is_set():
            return _Try(problem=f"the provider's rate limit left no turn within {limit:g} s")
        ours = limit < left
        return _Try(problem=f"no answer within {limit:g} s" if ours else "", untold=True)
    except ReplayMiss as miss:
        text = str(miss)
        return _Try(reply=faulted(text if text.startswith(REPLAY_MISS) else REPLAY_MISS + text))
    except ModelError as error:
        begun = ask.relay is not None and ask.relay.started
        return _Try(problem=redact(str(error), line.secrets), untold=begun)
    return _judge(done, line.secrets)


async def _in_turn(line: Line, ask: Ask, entered: asyncio.Event) -> Completion:
    """Make the call when its turn comes; `entered` says that it has come."""
    if line.pace is None:
        entered.set()
        return await _work(line.upstream, ask)
    async with line.pace.turn(ask.scope):
        entered.set()
        began = line.now()
        done = await _work(line.upstream, ask)
        line.pace.told(done.status, began)
        return done


def _work(upstream: Upstream, ask: Ask) -> Coroutine[object, object, Completion]:
    place = (ask.scope, ask.nth)
    if ask.relay is not None and isinstance(upstream, StreamingUpstream):
        return upstream.stream(ask.request, *place, ask.relay.emit)
    return upstream.complete(ask.request, *place)


def _judge(done: Completion, secrets: Sequence[str]) -> _Try:
    if done.status < 300:
        body = answer_without_secrets(done.body, secrets)
        return _Try(reply=Reply(status=200, body=body, usage=done.usage))
    if error_code(done.body) == DEADLINE:  # a recording of a session whose time was over
        return _Try(reply=Reply(status=done.status, body=done.body, usage=done.usage))
    said = redact(error_message(done.body), secrets)
    problem, code = f"HTTP {done.status} from the provider: {said}", error_code(done.body)
    if code in FINAL_CODES or done.status < 400:
        return _Try(reply=faulted(problem, lasting=code != UNAVAILABLE))
    if done.status in OURS:
        return _Try(reply=faulted(problem, answered=done.status, lasting=True))
    if done.status in PASSING or done.status >= 500:
        answered = done.status if done.status >= 500 else 0
        return _Try(problem=problem, wait_s=done.retry_after_s, answered=answered)
    cleaned = redact_body(done.body, secrets)
    return _Try(reply=Reply(status=done.status, body=cleaned, usage=done.usage))


async def within(work: Coroutine[object, object, T], seconds: float) -> T:
    """Await the work for so long, then cancel it and raise `TimeoutError` at once.

    Unlike `asyncio.timeout` this doesn't wait until the cancelled work has ended: a client
    library that swallows its cancellation holds nobody up.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(_look_at)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        raise TimeoutError
    return task.result()


def _look_at(task: asyncio.Task[T]) -> None:
    """Retrieve the error of a task that nobody waits for any more, so that none is logged."""
    if not task.cancelled():
        task.exception()
