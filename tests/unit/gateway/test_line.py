"""Retries, deadlines, and whose failure it was."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import monotonic

import pytest
from gateway_scene import FakeTime, MakeLine, ask

from milo.core.errors import ModelError, ReplayMiss
from milo.core.ports import Completion
from milo.gateway.line import Ask, Line, Policy, Reply, call, within
from milo.testing.scripted_model import Answer, ScriptedUpstream, always, in_turn

CANARY = "canary-51b0-key"


async def reply_of(line: Line, deadline: float = 1000.0) -> Reply:
    return await call(line, Ask(request=ask(), scope="scope", nth=0, deadline=deadline))


async def test_a_good_answer_is_final(make_line: MakeLine, fake_time: FakeTime) -> None:
    reply = await reply_of(make_line(ScriptedUpstream(always("fine"))))
    assert reply.ok and not reply.fault
    assert fake_time.sleeps == []


@pytest.mark.parametrize(
    "failure", [Answer(status=s) for s in (500, 502, 503, 429, 408)] + [Answer(drop=True)]
)
async def test_passing_failures_are_tried_again(
    make_line: MakeLine, fake_time: FakeTime, failure: Answer
) -> None:
    upstream = ScriptedUpstream(in_turn([failure, failure, "fine"]))
    assert (await reply_of(make_line(upstream))).ok
    assert upstream.tally.calls == 3
    assert len(fake_time.sleeps) == 2


async def test_waits_double_with_jitter_up_to_a_limit(
    make_line: MakeLine, fake_time: FakeTime
) -> None:
    policy = Policy(tries=7, first_wait_s=1.0, longest_wait_s=8.0)
    await reply_of(make_line(ScriptedUpstream(in_turn([Answer(status=500)])), policy=policy))
    for wait, full in zip(fake_time.sleeps, [1, 2, 4, 8, 8, 8], strict=True):
        assert full / 2 <= wait <= full
    assert len(set(fake_time.sleeps)) == 6


async def test_a_provider_that_stays_down_is_a_fault_and_503(make_line: MakeLine) -> None:
    upstream = ScriptedUpstream(in_turn([Answer(status=500, error="boom")]))
    reply = await reply_of(make_line(upstream))
    assert (reply.status, upstream.tally.calls) == (503, 3)
    assert "HTTP 500" in reply.fault and "boom" in reply.fault


@pytest.mark.parametrize("status", [307, 401, 402, 403, 404])
async def test_our_own_misconfiguration_is_a_fault_at_once(
    make_line: MakeLine, status: int
) -> None:
    upstream = ScriptedUpstream(in_turn([Answer(status=status)]))
    reply = await reply_of(make_line(upstream))
    assert reply.status == 503
    assert reply.fault
    assert upstream.tally.calls == 1


async def test_an_exhausted_quota_is_not_tried_again(make_line: MakeLine) -> None:
    upstream = ScriptedUpstream(in_turn([Answer(status=429, code="insufficient_quota")]))
    assert (await reply_of(make_line(upstream))).fault
    assert upstream.tally.calls == 1


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_what_the_request_caused_is_passed_on_and_no_fault(
    make_line: MakeLine, status: int
) -> None:
    """If it were a fault, a harness that overfills the context would be retried forever."""
    words = f"context length exceeded {CANARY}"
    answer = Answer(status=status, error=words, code="context_length_exceeded")
    reply = await reply_of(
        make_line(ScriptedUpstream(in_turn([answer])), secrets=(CANARY,)),
    )
    assert reply.status == status and reply.fault == ""
    assert "context length exceeded [redacted]" in str(reply.body)
    assert CANARY not in str(reply.body)


async def test_no_try_starts_after_the_deadline(make_line: MakeLine, fake_time: FakeTime) -> None:
    policy = Policy(tries=100, first_wait_s=1.0)
    upstream = ScriptedUpstream(in_turn([Answer(status=500)]))
    reply = await reply_of(make_line(upstream, policy=policy), deadline=5.0)
    assert reply.fault
    assert fake_time.now < 5.0


async def test_a_call_after_the_session_s_time_is_nobody_s_fault(make_line: MakeLine) -> None:
    upstream = ScriptedUpstream(always("late"))
    reply = await reply_of(make_line(upstream), deadline=0.0)
    assert (reply.status, reply.fault, upstream.tally.calls) == (504, "", 0)


class Deaf:
    """A client library that swallows its cancellation."""

    model = "deaf"

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                continue
        raise ModelError("too late for anybody")

    async def check(self) -> None: ...

    async def close(self) -> None: ...


async def test_the_deadline_does_not_depend_on_the_client_library(make_line: MakeLine) -> None:
    deaf = Deaf()
    began = monotonic()
    reply = await reply_of(make_line(deaf), deadline=0.05)
    assert monotonic() - began < 2.0
    assert reply.status == 504 and not reply.fault
    deaf.released.set()
    await asyncio.sleep(0)


async def test_a_provider_that_hangs_on_every_try_is_a_fault(make_line: MakeLine) -> None:
    policy = Policy(tries=2, call_timeout_s=0.01)
    upstream = ScriptedUpstream(in_turn([Answer(latency_s=60)]))
    reply = await reply_of(make_line(upstream, policy=policy))
    assert "no answer within 0.01 s" in reply.fault
    assert upstream.tally.calls == 2


class Missing(Deaf):
    async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
        raise ReplayMiss("scope 's', call 0: nothing")


async def test_a_replay_miss_is_told_apart_and_never_tried_again(
    make_line: MakeLine, fake_time: FakeTime
) -> None:
    reply = await reply_of(make_line(Missing()))
    assert reply.status == 503
    assert reply.fault.startswith("replay miss: ")
    assert fake_time.sleeps == []


async def test_secrets_are_taken_out_of_connection_errors(make_line: MakeLine) -> None:
    class Leaky(Deaf):
        async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
            raise ModelError(f"https://host/?key={CANARY} refused")

    reply = await reply_of(make_line(Leaky(), secrets=(CANARY,)))
    assert CANARY not in reply.fault + str(reply.body)


async def test_cancelling_the_waiter_cancels_the_work() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    task = asyncio.create_task(within(work(), 30))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 1)
