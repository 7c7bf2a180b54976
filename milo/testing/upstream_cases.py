"""Contract cases of `ports.Upstream`: every way to a model subclasses them.

Subclass `UpstreamCases`, name it ``Test…`` and yield the upstream from the context manager
`opened`. It must answer `REQUEST` at calls 0 to 3 of any scope. Where the provider can be out of
reach, return such an upstream from `unreachable`. Needs pytest with asyncio in auto mode.
"""
# ruff: noqa: D102 - the names of the cases are sentences

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

import pytest

from milo.core.errors import ModelError
from milo.core.ports import Completion, Upstream

REQUEST: Mapping[str, object] = {
    "messages": [
        {"role": "system", "content": "You answer with one word."},
        {"role": "user", "content": "What is the capital of France?"},
    ],
    "max_tokens": 8,
    "temperature": 0,
}


class UpstreamCases:
    """What holds of every upstream."""

    def opened(self) -> AbstractAsyncContextManager[Upstream]:
        """A context in which the upstream can be used."""
        raise NotImplementedError

    def unreachable(self) -> Upstream | None:
        """An upstream whose provider can't be reached, where there is such a thing."""
        return None

    async def test_it_answers_in_openai_s_shape(self) -> None:
        async with self.opened() as upstream:
            done = await upstream.complete(REQUEST, "shape", 0)
        assert done.status == 200
        assert done.seconds >= 0
        choices = done.body["choices"]
        assert isinstance(choices, list)
        assert isinstance(choices[0]["message"]["content"], str)
        assert choices[0]["finish_reason"] in ("stop", "length")

    async def test_its_answer_is_json_ready(self) -> None:
        async with self.opened() as upstream:
            done = await upstream.complete(REQUEST, "json", 0)
        assert json.loads(json.dumps(done.body)) == done.body

    async def test_usage_is_the_body_s_with_no_token_under_two_kinds(self) -> None:
        async with self.opened() as upstream:
            done = await upstream.complete(REQUEST, "usage", 0)
        usage, raw = done.usage, done.body["usage"]
        assert isinstance(raw, Mapping)
        counted = usage.uncached_input + usage.cached_input + usage.cache_write
        assert counted == raw["prompt_tokens"] > 0
        assert usage.output == raw["completion_tokens"] > 0
        assert usage.calls == 1
        assert not usage.estimated

    async def test_the_model_s_name_is_stable(self) -> None:
        async with self.opened() as upstream:
            before = upstream.model
            await upstream.complete(REQUEST, "name", 0)
            assert upstream.model == before != ""

    async def test_a_request_is_never_changed(self) -> None:
        request = copy.deepcopy(dict(REQUEST))
        async with self.opened() as upstream:
            await upstream.complete(request, "frozen", 0)
        assert request == REQUEST

    async def test_calls_may_be_made_at_once(self) -> None:
        async with self.opened() as upstream:
            done: list[Completion] = await asyncio.gather(
                *(upstream.complete(REQUEST, "many", nth) for nth in range(4))
            )
        assert [one.status for one in done] == [200] * 4

    async def test_a_cancelled_call_leaves_it_usable(self) -> None:
        async with self.opened() as upstream:
            call = asyncio.ensure_future(upstream.complete(REQUEST, "cut", 0))
            await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait({call})
            assert (await upstream.complete(REQUEST, "cut", 1)).status == 200

    async def test_a_check_passes_and_closing_twice_is_safe(self) -> None:
        async with self.opened() as upstream:
            await upstream.check()
            await upstream.close()
            await upstream.close()

    async def test_a_provider_out_of_reach_is_a_model_error(self) -> None:
        upstream = self.unreachable()
        if upstream is None:
            pytest.skip("this upstream has no provider that could be out of reach")
        with pytest.raises(ModelError):
            await upstream.complete(REQUEST, "gone", 0)
        with pytest.raises(ModelError):
            await upstream.check()
        await upstream.close()
