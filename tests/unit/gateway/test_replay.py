"""A recording answers what was recorded, and nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from gateway_scene import FakeTime, MakeLine, ask

from milo.core.errors import BudgetExceeded, ModelError, ReplayMiss
from milo.core.evidence import Exchange
from milo.core.ports import Caps
from milo.gateway.client import complete, text_of
from milo.gateway.pins import Pins
from milo.gateway.replay_upstream import ReplayUpstream, canonical
from milo.gateway.session import Session
from milo.testing.scripted_model import Answer, Script, ScriptedUpstream, always, in_turn

PINS = Pins(model="frozen", temperature=0.0)
CAPS = Caps(calls=3, output_tokens_per_call=32)


async def record(make_line: MakeLine, script: Script, asked: list[Any]) -> tuple[Exchange, ...]:
    session = Session(make_line(ScriptedUpstream(script), PINS), "s", CAPS, 1000)
    for request in asked:
        await session.ask(request)
    return (await session.close()).exchanges


def replay(make_line: MakeLine, exchanges: tuple[Exchange, ...], scope: str = "s") -> Session:
    upstream = ReplayUpstream("frozen", lambda s: exchanges if s == "s" else ())
    return Session(make_line(upstream, PINS), scope, CAPS, 1000)


async def test_a_replayed_session_reports_what_was_recorded(make_line: MakeLine) -> None:
    asked = [ask("a", temperature=1.0), {"messages": []}, ask("b", max_tokens=900), ask(), ask()]
    exchanges = await record(make_line, in_turn(["one", Answer(status=400), "three"]), asked)
    assert [e.status for e in exchanges] == [200, 400, 400, 200, 429]
    session = replay(make_line, exchanges)
    for request in asked:
        await session.ask(request)
    again = (await session.close()).exchanges
    assert [(e.request, e.response, e.usage) for e in again] == [
        (e.request, e.response, e.usage) for e in exchanges
    ]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        (ask("another"), "messages[0].content"),
        (ask("hello", seed=1), "seed"),
        ({"messages": [*ask("hello")["messages"], {"role": "user"}]}, "messages (length)"),
    ],
)
async def test_an_unseen_request_fails_loudly(
    make_line: MakeLine, fake_time: FakeTime, changed: dict[str, Any], field: str
) -> None:
    session = replay(make_line, await record(make_line, always("a"), [ask("hello")]))
    reply = await session.ask(changed)
    report = await session.close()
    assert reply.status == 503
    assert report.fault.startswith("replay miss: scope 's', call 0: ")
    assert f"field {field} was" in report.fault
    assert fake_time.sleeps == []


async def test_a_call_beyond_the_recording_is_a_miss(make_line: MakeLine) -> None:
    session = replay(make_line, await record(make_line, always("a"), [ask()]))
    await session.ask(ask())
    await session.ask(ask())
    assert "call 1: the recording holds 1 calls" in (await session.close()).fault


async def test_an_unknown_scope_is_a_miss(make_line: MakeLine) -> None:
    session = replay(make_line, await record(make_line, always("a"), [ask()]), "other")
    await session.ask(ask())
    assert "scope 'other'" in (await session.close()).fault


async def test_what_the_gateway_overrode_makes_no_miss(make_line: MakeLine) -> None:
    recorded = await record(make_line, always("a"), [ask(temperature=1.0, max_tokens=900)])
    session = replay(make_line, recorded)
    assert (await session.ask(ask(temperature=0.7, max_tokens=500, stream=True))).ok


async def test_a_recorded_fault_is_replayed_without_waiting(
    make_line: MakeLine, fake_time: FakeTime
) -> None:
    recorded = await record(make_line, in_turn([Answer(drop=True)]), [ask()])
    fake_time.sleeps.clear()
    session = replay(make_line, recorded)
    assert (await session.ask(ask())).status == 503
    assert fake_time.sleeps == []
    assert (await session.close()).fault


async def test_a_recorded_cut_is_replayed_as_it_was(make_line: MakeLine) -> None:
    line = make_line(ScriptedUpstream(in_turn([Answer(latency_s=60)])), PINS)
    cut = Session(line, "s", CAPS, 1000)
    call = asyncio.create_task(cut.ask(ask()))
    await asyncio.sleep(0.01)
    recorded = (await cut.close()).exchanges
    await call
    session = replay(make_line, recorded)
    assert (await session.ask(ask())).status == 499
    assert (await session.close()).fault == ""


def loose(make_line: MakeLine, exchanges: tuple[Exchange, ...]) -> Session:
    upstream = ReplayUpstream("scripted/model", lambda scope: exchanges, loosely=True)
    return Session(make_line(upstream, PINS), "s", CAPS, 1000)


async def test_figures_of_a_clock_make_no_miss_where_a_program_asks(make_line: MakeLine) -> None:
    told = "On Monday, 30 November 2026: chunk 7a4045ce took 0.0513 s"
    again = "On Tuesday, 1 December 2026: chunk 804a22f1 took 1.2 s"
    recorded = await record(make_line, always("a"), [ask(told)])
    assert (await loose(make_line, recorded).ask(ask(again))).ok
    assert (await replay(make_line, recorded).ask(ask(again))).status == 503


async def test_another_word_is_a_miss_where_a_program_asks_too(make_line: MakeLine) -> None:
    session = loose(make_line, await record(make_line, always("a"), [ask("took 3 s")]))
    assert (await session.ask(ask("failed in 3 s"))).status == 503
    assert (await session.close()).fault.startswith(
        "replay miss: scope 's', call 0: field messages"
    )


async def test_calls_side_by_side_are_each_answered_once_in_any_order(make_line: MakeLine) -> None:
    script = in_turn([Answer(text="title"), Answer(text="work")])
    recorded = await record(make_line, script, [ask("a title"), ask("the work")])
    session = loose(make_line, recorded)
    replies = [await session.ask(ask(words)) for words in ("the work", "a title")]
    assert [text_of(reply.body) for reply in replies] == ["work", "title"]
    assert (await session.ask(ask("the work"))).status == 503


async def test_a_call_that_was_never_answered_is_not_answered_again(make_line: MakeLine) -> None:
    line = make_line(ScriptedUpstream(in_turn([Answer(latency_s=60)])), PINS)
    cut = Session(line, "s", CAPS, 1000)
    call = asyncio.create_task(cut.ask(ask()))
    await asyncio.sleep(0.01)
    recorded = (await cut.close()).exchanges
    await call
    session = loose(make_line, recorded)
    again = asyncio.create_task(session.ask(ask()))
    await asyncio.sleep(0.01)
    assert not again.done()
    assert (await session.close()).exchanges[0].status == 499
    assert (await again).status == 499


def test_the_hash_knows_no_order_of_keys_and_no_nulls() -> None:
    one = {"messages": [{"role": "user", "content": "é"}], "seed": 1, "stop": None}
    two = {"seed": 1, "messages": [{"content": "é", "role": "user"}]}
    assert canonical(one) == canonical(two)
    assert canonical(one) != canonical({**one, "seed": 2})
    assert canonical(one, {"seed"}) == canonical({**one, "seed": 2}, {"seed"})


async def test_the_helper_returns_text_usage_and_record(make_line: MakeLine) -> None:
    line = make_line(ScriptedUpstream(always("done")))
    answer = await complete(line, "mutator 1", ask()["messages"], max_tokens=5)
    assert answer.text == "done"
    assert answer.usage.calls == 1
    assert answer.exchanges[0].request["max_tokens"] == 5


async def test_the_helper_s_errors_tell_miss_cap_and_provider_apart(make_line: MakeLine) -> None:
    messages = ask()["messages"]
    missing = make_line(ReplayUpstream("m", lambda scope: ()))
    with pytest.raises(ReplayMiss, match="replay miss: scope 's'"):
        await complete(missing, "s", messages)
    down = make_line(ScriptedUpstream(in_turn([Answer(status=401, error="no key")])))
    with pytest.raises(ModelError, match="no key"):
        await complete(down, "s", messages)
    bad = make_line(ScriptedUpstream(in_turn([Answer(status=400, error="too long")])))
    with pytest.raises(ModelError, match="HTTP 400: too long"):
        await complete(bad, "s", messages)
    with pytest.raises(BudgetExceeded, match="0 calls"):
        await complete(down, "s", messages, caps=Caps(calls=0))


async def test_a_recording_without_a_model_is_refused() -> None:
    with pytest.raises(ModelError):
        await ReplayUpstream("", lambda scope: ()).check()
    upstream = ReplayUpstream("m", lambda scope: ())
    await upstream.check()
    await upstream.close()
