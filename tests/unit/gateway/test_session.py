"""Caps, meter and record of one caller."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from gateway_scene import FakeTime, MakeLine, ask

from milo.core.ports import Caps, Completion
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.line import Policy
from milo.gateway.paying import prompt_tokens
from milo.gateway.pins import Pins, pin
from milo.gateway.prices import FREE, Price
from milo.gateway.session import REFUSALS_KEPT, Session
from milo.testing.scripted_model import (
    Answer,
    ScriptedServer,
    ScriptedUpstream,
    always,
    in_turn,
)

CANARY = "canary-99ac-key"
BIG = Answer(text="x", prompt_tokens=60, cached_tokens=20, output_tokens=40, reasoning_tokens=10)


def open_session(line: object, caps: Caps | None = None, seconds: float = 1000.0) -> Session:
    return Session(line, "scope", caps or Caps(), seconds)  # type: ignore[arg-type]


async def test_the_meter_agrees_with_the_model_s_own_count(make_line: MakeLine) -> None:
    upstream = ScriptedUpstream(in_turn([BIG]), price=0.001)
    session = open_session(make_line(upstream))
    for _ in range(3):
        await session.ask(ask())
    usage = (await session.close()).usage
    assert usage.calls == upstream.tally.calls == 3
    assert usage.uncached_input + usage.cached_input == upstream.tally.prompt_tokens == 180
    assert usage.output == upstream.tally.output_tokens == 120
    assert (usage.cached_input, usage.reasoning) == (60, 30)
    assert usage.dollars is not None and abs(usage.dollars - 0.3) < 1e-9


async def test_an_unknown_price_stays_unknown_in_the_sum(make_line: MakeLine) -> None:
    session = open_session(make_line(ScriptedUpstream(always("a"), price=None)))
    await session.ask(ask())
    report = await session.close()
    assert report.usage.dollars is None
    assert report.usage.tokens > 0


async def test_the_call_cap_answers_429_and_forwards_nothing(make_line: MakeLine) -> None:
    upstream = ScriptedUpstream(always("a"))
    session = open_session(make_line(upstream), Caps(calls=2))
    replies = [await session.ask(ask()) for _ in range(4)]
    assert [reply.status for reply in replies] == [200, 200, 429, 429]
    assert replies[2].body["error"]["code"] == "budget_exceeded"  # type: ignore[index]
    report = await session.close()
    assert upstream.tally.calls == report.usage.calls == 2
    assert report.capped == "2 calls" and report.fault == ""


async def test_the_token_cap_is_exceeded_by_at_most_one_call(make_line: MakeLine) -> None:
    session = open_session(make_line(ScriptedUpstream(in_turn([BIG]))), Caps(tokens=250))
    statuses = [(await session.ask(ask())).status for _ in range(5)]
    report = await session.close()
    assert statuses == [200, 200, 200, 429, 429]
    assert report.usage.tokens == 300
    assert report.capped == "250 tokens"


async def test_concurrent_calls_reserve_before_they_are_made(make_line: MakeLine) -> None:
    """Without reservations ten threads of a harness would all pass under the cap at once."""
    upstream = ScriptedUpstream(in_turn([Answer(text="a", prompt_tokens=10, output_tokens=90)]))
    caps = Caps(tokens=100, output_tokens_per_call=95)
    session = open_session(make_line(upstream), caps)
    replies = await asyncio.gather(*(session.ask(ask()) for _ in range(10)))
    assert sorted(reply.status for reply in replies) == [200] + [429] * 9
    assert upstream.tally.calls == 1


async def test_a_harness_s_bad_request_is_recorded_and_costs_nothing(make_line: MakeLine) -> None:
    upstream = ScriptedUpstream(always("a"))
    session = open_session(make_line(upstream), Caps(calls=1))
    assert (await session.ask({"messages": []})).status == 400
    assert (await session.ask(ask())).ok
    first, second = (await session.close()).exchanges
    assert (first.status, first.usage.calls) == (400, 0)
    assert (second.status, second.usage.calls) == (200, 1)


async def test_exchanges_hold_the_request_as_sent_and_what_was_pinned(make_line: MakeLine) -> None:
    upstream = ScriptedUpstream(always("a"))
    session = open_session(
        make_line(upstream, Pins(model="frozen", temperature=0.0)),
        Caps(output_tokens_per_call=64),
    )
    asked = ask(model="mine", temperature=1.0, seed=5, stream=True)
    await session.ask(asked)
    (exchange,) = (await session.close()).exchanges
    assert exchange.request == asked
    assert exchange.pinned == ("max_tokens", "model", "temperature")
    assert exchange.response["model"] == "frozen"
    (sent,) = upstream.tally.requests
    assert sent == {**ask(), "model": "frozen", "temperature": 0.0, "seed": 5, "max_tokens": 64}


async def test_exchanges_stand_in_the_order_of_the_calls(make_line: MakeLine) -> None:
    def slow_first(request: Mapping[str, object], nth: int) -> Answer:
        return Answer(text=f"answer {nth}", latency_s=0.02 if nth == 0 else 0.0)

    session = open_session(make_line(ScriptedUpstream(slow_first)))
    await asyncio.gather(*(session.ask(ask(f"ask {n}")) for n in range(3)))
    exchanges = (await session.close()).exchanges
    pairs = [(str(e.request), str(e.response)) for e in exchanges]
    assert all(f"ask {n}" in asked and f"answer {n}" in got for n, (asked, got) in enumerate(pairs))


async def test_refusals_do_not_fill_the_memory(make_line: MakeLine) -> None:
    session = open_session(make_line(ScriptedUpstream(always("a"))), Caps(calls=0))
    for _ in range(REFUSALS_KEPT * 3):
        await session.ask(ask())
    assert len((await session.close()).exchanges) == REFUSALS_KEPT


async def test_closing_cuts_calls_in_flight_and_counts_them(make_line: MakeLine) -> None:
    session = open_session(make_line(ScriptedUpstream(in_turn([Answer(latency_s=60)]))))
    call = asyncio.create_task(session.ask(ask("word " * 100)))
    await asyncio.sleep(0.01)
    report = await asyncio.wait_for(session.close(), 2)
    assert (await call).status == 499
    (exchange,) = report.exchanges
    assert exchange.status == 499
    assert report.usage.calls == 1 and report.usage.estimated and report.usage.tokens > 100
    assert report.fault == ""


async def test_a_caller_that_goes_away_takes_its_call_with_it(make_line: MakeLine) -> None:
    upstream = ScriptedUpstream(in_turn([Answer(latency_s=60)]))
    session = open_session(make_line(upstream))
    call = asyncio.create_task(session.ask(ask()))
    await asyncio.sleep(0.01)
    call.cancel()
    await asyncio.wait({call})
    await asyncio.sleep(0.01)
    assert upstream.tally.in_flight == 0
    assert (await session.close()).exchanges[0].status == 499


async def test_a_closed_session_answers_401_and_reports_the_same(make_line: MakeLine) -> None:
    upstream = ScriptedUpstream(always("a"))
    session = open_session(make_line(upstream))
    await session.ask(ask())
    report = await session.close()
    assert (await session.ask(ask())).status == 401
    assert await session.close() == report
    assert upstream.tally.calls == 1


async def test_a_provider_that_stays_down_leaves_its_fault_on_the_session(
    make_line: MakeLine,
) -> None:
    session = open_session(make_line(ScriptedUpstream(in_turn([Answer(drop=True)]))))
    assert (await session.ask(ask())).status == 503
    report = await session.close()
    assert "scripted drop" in report.fault


async def test_an_error_of_ours_is_a_fault_without_secrets(make_line: MakeLine) -> None:
    def broken(request: Mapping[str, object], nth: int) -> Answer:
        raise KeyError(f"lost {CANARY}")

    session = open_session(make_line(ScriptedUpstream(broken), secrets=(CANARY,)))
    assert (await session.ask(ask())).status == 503
    report = await session.close()
    assert report.fault.startswith("gateway error: KeyError")
    assert CANARY not in repr(report)


async def test_a_secret_in_an_answer_is_redacted_and_the_rest_is_as_it_was(
    make_line: MakeLine,
) -> None:
    text = f"token {CANARY} and Bearer abcdefghijk stay apart"
    line = make_line(ScriptedUpstream(always(text)), secrets=(CANARY,))
    session = open_session(line)
    reply = await session.ask(ask())
    assert "token [redacted] and Bearer abcdefghijk stay apart" in str(reply.body)
    assert CANARY not in repr(await session.close())


async def test_every_call_ends_with_the_session_s_time(
    make_line: MakeLine, fake_time: FakeTime
) -> None:
    session = open_session(make_line(ScriptedUpstream(in_turn([Answer(latency_s=60)]))), None, 0.02)
    reply = await asyncio.wait_for(session.ask(ask()), 5)
    report = await session.close()
    assert (reply.status, report.fault, report.usage.calls) == (504, "", 1)
    assert report.usage.estimated


@pytest.mark.parametrize(("price", "cost"), [(FREE, 0.0), (None, None)])
async def test_a_call_that_was_cut_is_charged_by_the_line_s_price(
    make_line: MakeLine, price: Price | None, cost: float | None
) -> None:
    """A free model's run stays free; an unknown price is not zero."""
    line = make_line(ScriptedUpstream(in_turn([Answer(latency_s=60)])), price=price)
    session = open_session(line, None, 0.02)
    await asyncio.wait_for(session.ask(ask()), 5)
    usage = (await session.close()).usage
    assert usage.dollars == cost
    assert usage.uncached_input > 0 and usage.output == 0


async def test_a_try_that_hung_is_charged_beside_the_one_that_answered(
    make_line: MakeLine,
) -> None:
    """The provider read the prompt each time, and may charge for it."""
    answers = in_turn([Answer(latency_s=60), Answer(text="a", prompt_tokens=7, output_tokens=1)])
    policy, price = Policy(tries=3, call_timeout_s=0.02), Price(uncached_input=1e6)
    upstream = ScriptedUpstream(answers, price=1.0)
    session = open_session(make_line(upstream, policy=policy, price=price))
    asked = ask("word " * 100)
    assert (await session.ask(asked)).ok
    usage = (await session.close()).usage
    hung = prompt_tokens(pin(asked, Pins(model="frozen"), None))
    assert (usage.uncached_input, usage.output, usage.calls) == (7 + hung, 1, 1)
    assert usage.estimated and usage.dollars == 8 + hung


async def test_a_try_that_was_refused_costs_nothing(make_line: MakeLine) -> None:
    session = open_session(make_line(ScriptedUpstream(in_turn([Answer(status=500), "a"]))))
    reply = await session.ask(ask("word " * 100))
    assert reply.ok and not reply.usage.estimated


async def test_a_stream_that_was_cut_is_charged_for_what_came(make_line: MakeLine) -> None:
    price = Price(uncached_input=0, output=1e6)
    words = " ".join(["word"] * 50)
    seen = asyncio.Event()

    async def emit(chunk: Mapping[str, object]) -> None:
        seen.set()

    async with ScriptedServer(in_turn([Answer(text=words, seconds_per_token=0.02)])) as server:
        upstream = HttpUpstream(server.base_url, "m", wire_model="m")
        session = open_session(make_line(upstream, price=price))
        call = asyncio.create_task(session.ask(ask(), emit=emit))
        await asyncio.wait_for(seen.wait(), 5)
        report = await session.close()
        assert (await call).status == 499
        await upstream.close()
    assert report.usage.estimated and 0 < report.usage.output < 50
    assert report.usage.dollars == report.usage.output
    assert report.fault == ""


async def test_what_a_translation_left_out_is_noted_beside_the_pins(make_line: MakeLine) -> None:
    session = open_session(make_line(ScriptedUpstream(always("a"))))
    await session.ask(ask(model="other"), noted=("tools.web_search",))
    (exchange,) = (await session.close()).exchanges
    assert exchange.pinned == ("model", "tools.web_search")


async def test_the_seconds_of_a_call_contain_its_retries(
    make_line: MakeLine, fake_time: FakeTime
) -> None:
    line = make_line(ScriptedUpstream(in_turn([Answer(status=500), "a"])), policy=Policy(tries=2))
    session = open_session(line)
    await session.ask(ask())
    (exchange,) = (await session.close()).exchanges
    assert exchange.seconds == sum(fake_time.sleeps) > 0


async def test_a_refused_request_is_numbered_neither_here_nor_upstream(make_line: MakeLine) -> None:
    numbers: list[int] = []

    class Numbered(ScriptedUpstream):
        async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
            numbers.append(nth)
            return await super().complete(request, scope, nth)

    session = open_session(make_line(Numbered(always("a"))))
    for asked in (ask(), {"messages": []}, ask()):
        await session.ask(asked)
    assert numbers == [0, 1]


async def test_calls_are_counted_for_the_scope_that_they_were_made_under(
    make_line: MakeLine,
) -> None:
    session = open_session(make_line(ScriptedUpstream(in_turn([BIG]))))
    await session.ask(ask())
    session.scope = "later"
    for _ in range(2):
        await session.ask(ask())
    assert [session.report_in(scope).usage.calls for scope in ("scope", "later", "never")] == [
        1,
        2,
        0,
    ]
    assert (await session.close()).usage.calls == 3
