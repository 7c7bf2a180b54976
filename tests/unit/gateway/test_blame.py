"""A harness's own bad requests are its failure; an outage of the provider is not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from gateway_scene import FakeTime, MakeLine, ask

from milo.core.budget import Spend
from milo.core.evidence import Exchange
from milo.core.ports import Caps
from milo.gateway.blame import REFUSED
from milo.gateway.paying import CHECK
from milo.gateway.replay_upstream import ReplayUpstream
from milo.gateway.session import Session
from milo.gateway.wire import error_code
from milo.testing.scripted_model import Answer, ScriptedUpstream, in_turn

BAD = ask("a grammar that breaks the parser")


def breaking_on_bad(status: int) -> ScriptedUpstream:
    """A provider that is well, but for one request."""

    def script(request: Mapping[str, object], nth: int) -> Answer:
        bad = "grammar" in str(request["messages"])
        return Answer(status=status, error="no such thing") if bad else Answer(text="fine")

    return ScriptedUpstream(script)


async def asked(session: Session, body: Mapping[str, object]) -> int:
    return (await session.ask(body)).status


@pytest.mark.parametrize("status", [401, 402, 403, 404, 500, 501, 503])
async def test_a_request_that_alone_is_answered_with_an_error_is_the_harness_s(
    status: int, make_line: MakeLine
) -> None:
    """What breaks without it: a harness makes its attempts missing by asking for nonsense."""
    session = Session(make_line(breaking_on_bad(status)), "scope", Caps(), 1000.0)
    reply = await session.ask(BAD)
    assert reply.status == 400 and error_code(reply.body) == REFUSED
    assert "no such thing" in str(reply.body)
    assert await asked(session, ask()) == 200
    assert (await session.close()).fault == ""


@pytest.mark.parametrize("status", [401, 404, 500, 503])
async def test_a_provider_that_answers_nothing_else_either_is_at_fault(
    status: int, make_line: MakeLine
) -> None:
    session = Session(make_line(ScriptedUpstream(in_turn([Answer(status=status)]))), "s", Caps(), 9)
    assert await asked(session, ask()) == 503
    assert f"HTTP {status}" in (await session.close()).fault


async def test_a_provider_that_fails_now_and_then_is_not_the_harness_s_doing(
    make_line: MakeLine,
) -> None:
    """Three tries fail, a small request passes, the fourth fails, a small one fails: an outage."""
    down = Answer(status=503)
    upstream = ScriptedUpstream(in_turn([down, down, down, "fine", down, down]))
    session = Session(make_line(upstream), "scope", Caps(), 1000.0)
    assert await asked(session, ask()) == 503
    assert (await session.close()).fault


async def test_a_provider_that_recovers_answers_after_all(make_line: MakeLine) -> None:
    down = Answer(status=503)
    upstream = ScriptedUpstream(in_turn([down, down, down, "fine", "here it is"]))
    session = Session(make_line(upstream), "scope", Caps(), 1000.0)
    reply = await session.ask(ask())
    assert reply.ok and "here it is" in str(reply.body)


async def test_an_error_of_ours_that_comes_with_one_request_only_is_no_fault(
    make_line: MakeLine,
) -> None:
    def script(request: Mapping[str, object], nth: int) -> Answer:
        if "grammar" in str(request["messages"]):
            raise KeyError("type")
        return Answer(text="fine")

    session = Session(make_line(ScriptedUpstream(script)), "scope", Caps(), 1000.0)
    assert await asked(session, BAD) == 400
    assert (await session.close()).fault == ""


@pytest.mark.parametrize("failure", [Answer(status=429), Answer(drop=True)])
async def test_a_rate_limit_and_a_broken_connection_are_never_the_harness_s(
    failure: Answer, make_line: MakeLine
) -> None:
    upstream = ScriptedUpstream(in_turn([failure] * 3 + [Answer(text="fine")]))
    session = Session(make_line(upstream), "scope", Caps(), 1000.0)
    assert await asked(session, ask()) == 503
    assert upstream.tally.calls == 3, "nothing is asked to find that out"


async def test_small_requests_are_paid_and_none_is_made_past_the_deadline(
    make_line: MakeLine, fake_time: FakeTime
) -> None:
    paid: list[str] = []

    class Purse:
        async def reserve_call(self, call: str, role: str, scope: str, amount: Spend) -> None:
            paid.append(scope)

        async def settle_call(self, call: str, amount: Spend) -> None:
            pass

    session = Session(make_line(breaking_on_bad(500), purse=Purse()), "scope", Caps(), 1000.0)
    assert await asked(session, BAD) == 400
    assert paid == ["scope", CHECK, CHECK]
    late = breaking_on_bad(404)
    session = Session(make_line(late), "scope", Caps(), 0.0)
    assert await asked(session, BAD) == 504 and not late.tally.calls


async def test_a_recorded_refusal_is_replayed_as_it_was_without_asking_anybody(
    make_line: MakeLine,
) -> None:
    live = Session(make_line(breaking_on_bad(500)), "scope", Caps(), 1000.0)
    first = await live.ask(BAD)
    recorded: tuple[Exchange, ...] = (await live.close()).exchanges
    replayed = Session(make_line(ReplayUpstream("m", lambda _: recorded)), "scope", Caps(), 1000.0)
    again = await replayed.ask(BAD)
    assert (again.status, again.body, again.fault) == (first.status, first.body, "")
