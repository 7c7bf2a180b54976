"""Every call is promised to a purse before it is made, and settled after."""

from __future__ import annotations

import asyncio

import pytest
from gateway_scene import MakeLine, ask

from milo.core.budget import Spend
from milo.core.calls import SPENT
from milo.core.errors import BudgetSpent, ModelError
from milo.core.ports import Caps
from milo.gateway.paying import CHECK, REPLY_TOKENS, checked, prompt_tokens
from milo.gateway.pins import Pinned
from milo.gateway.prices import Price
from milo.gateway.session import Session
from milo.testing.scripted_model import Answer, ScriptedUpstream, always, in_turn

PRICE = Price(uncached_input=1.0, cached_input=1.0, output=10.0)
ANSWER = Answer(text="x", prompt_tokens=60, output_tokens=40)


class Till:
    """A purse that notes, and that can hold callers up or turn them away."""

    def __init__(self, *, spent: bool = False, open_: bool = True) -> None:
        self.reserved: dict[str, tuple[str, str, Spend]] = {}
        self.settled: dict[str, Spend] = {}
        self.spent = spent
        self.gate = asyncio.Event()
        if open_:
            self.gate.set()

    async def reserve_call(self, call: str, role: str, scope: str, amount: Spend) -> None:
        self.reserved[call] = (role, scope, amount)
        await self.gate.wait()
        if self.spent:
            raise BudgetSpent("dollars are spent")

    async def settle_call(self, call: str, amount: Spend) -> None:
        self.settled[call] = amount


def session(make_line: MakeLine, upstream: ScriptedUpstream, till: Till) -> Session:
    line = make_line(upstream, price=PRICE, purse=till, role="mutator")
    return Session(line, "round", Caps(output_tokens_per_call=50), 1000.0)


async def test_a_call_is_promised_at_most_and_settled_at_what_it_cost(make_line: MakeLine) -> None:
    till, upstream = Till(), ScriptedUpstream(in_turn([ANSWER]), price=0.001)
    ours = session(make_line, upstream, till)
    await ours.ask(ask("word " * 100, max_tokens=900))
    report = await ours.close()
    ((role, scope, promised),) = till.reserved.values()
    assert (role, scope) == ("mutator", "round")
    assert promised.tokens > 50 + 500 // 4, "the prompt's size, and the capped reply"
    assert promised.dollars == pytest.approx((promised.tokens - 50 + 500) / 1e6)
    assert list(till.settled.values()) == [Spend.of(report.usage)]
    assert report.usage.tokens == 100


async def test_a_reply_that_nothing_limits_is_promised_a_long_one(make_line: MakeLine) -> None:
    till = Till()
    line = make_line(ScriptedUpstream(always("a")), purse=till)
    await Session(line, "s", Caps(), 1000.0).ask(ask())
    ((_, _, promised),) = till.reserved.values()
    assert promised.tokens > REPLY_TOKENS


@pytest.mark.parametrize("key", ["messages", "tools", "functions", "response_format"])
def test_everything_that_a_model_may_read_is_promised(key: str) -> None:
    request = {"messages": [{"role": "user", "content": "a"}], key: [{"words": "word " * 1000}]}
    assert prompt_tokens(Pinned(request=request, names=())) > 1000


async def test_a_picture_is_promised_as_one_and_not_by_the_size_of_its_data(
    make_line: MakeLine,
) -> None:
    till = Till()
    url = "data:image/png;base64," + "A" * 1_000_000
    part = {"type": "image_url", "image_url": {"url": url}}
    line = make_line(ScriptedUpstream(always("a")), purse=till)
    asked = {"messages": [{"role": "user", "content": [part]}], "max_tokens": 10}
    await Session(line, "s", Caps(), 1000.0).ask(asked)
    ((_, _, promised),) = till.reserved.values()
    assert 1000 < promised.tokens < 3000


async def test_a_run_without_money_is_no_fault_of_the_harness(make_line: MakeLine) -> None:
    """Its attempt counts as missing, never as a zero."""
    till, upstream = Till(spent=True), ScriptedUpstream(always("a"))
    ours = session(make_line, upstream, till)
    reply = await ours.ask(ask())
    report = await ours.close()
    assert reply.status == 429 and reply.body["error"]["code"] == "budget_exceeded"  # type: ignore[index]
    assert report.fault == f"{SPENT}dollars are spent" and report.capped == ""
    assert report.usage.calls == upstream.tally.calls == 0
    assert not till.settled, "what was never promised is not settled"


async def test_a_call_that_waits_for_money_when_it_is_cut_costs_nothing(
    make_line: MakeLine,
) -> None:
    till, upstream = Till(open_=False), ScriptedUpstream(always("a"))
    ours = session(make_line, upstream, till)
    waiting = asyncio.ensure_future(ours.ask(ask()))
    while not till.reserved:
        await asyncio.sleep(0)
    report = await ours.close()
    await waiting
    assert upstream.tally.calls == 0 and report.usage.tokens == 0
    assert list(till.settled.values()) == [Spend()], "its place is given back"


async def test_a_failed_call_gives_its_promise_back(make_line: MakeLine) -> None:
    till = Till()
    failing = ScriptedUpstream(in_turn([Answer(status=400)]))
    ours = session(make_line, failing, till)
    await ours.ask(ask())
    await ours.close()
    assert [spend.tokens for spend in till.settled.values()] == [0]


async def test_the_first_check_of_a_model_is_paid_too(make_line: MakeLine) -> None:
    till = Till()
    await checked(make_line(ScriptedUpstream(always("a")), purse=till))
    ((role, scope, _),) = till.reserved.values()
    assert (role, scope) == ("target", CHECK) and len(till.settled) == 1


async def test_a_check_that_fails_gives_its_promise_back(make_line: MakeLine) -> None:
    class Dead(ScriptedUpstream):
        async def check(self) -> None:  # type: ignore[override]
            raise ModelError("nobody there")

    till = Till()
    with pytest.raises(ModelError, match="nobody there"):
        await checked(make_line(Dead(always("a")), purse=till))
    assert list(till.settled.values()) == [Spend()]


async def test_a_run_without_money_checks_nothing(make_line: MakeLine) -> None:
    """A resume that only has its winner to name must not die of the model it can't pay."""
    upstream = ScriptedUpstream(always("a"))
    await checked(make_line(upstream, purse=Till(spent=True)))
    assert upstream.tally.calls == 0
