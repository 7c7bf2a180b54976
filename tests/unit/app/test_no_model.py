"""A run without a model: a request is refused at no cost, and nothing has to answer."""

from __future__ import annotations

import asyncio

from milo.app.no_model import NOT_FOUND, NoUpstream
from milo.core.attempt import Usage


def test_every_request_is_told_that_there_is_no_model_and_costs_nothing() -> None:
    upstream = NoUpstream()
    answer = asyncio.run(upstream.complete({"messages": []}, "scope", 0))
    assert answer.status == NOT_FOUND
    assert "no model" in str(answer.body)
    assert answer.usage == Usage()
    assert answer.seconds == 0.0


def test_a_check_needs_nobody_and_closing_ends_nothing() -> None:
    upstream = NoUpstream()

    async def use() -> None:
        await upstream.check()
        await upstream.close()
        assert (await upstream.complete({}, "scope", 1)).status == NOT_FOUND

    asyncio.run(use())
    assert upstream.model == "none"
