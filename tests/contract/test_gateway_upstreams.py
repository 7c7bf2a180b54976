"""Every way to a model keeps the upstream contract."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from platformdirs import user_cache_path

from milo.agents.agent_loop import TOOLS
from milo.agents.dialogue import Converse, Dialogue
from milo.app.model_caller import SessionCaller
from milo.core.attempt import Usage
from milo.core.evidence import Exchange
from milo.core.ports import StreamingUpstream, Upstream
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.line import Line, Policy
from milo.gateway.litellm_upstream import LitellmUpstream
from milo.gateway.llama_server import ServerSettings, embedded_server
from milo.gateway.pins import Pins
from milo.gateway.replay_upstream import ReplayUpstream
from milo.gateway.replica_upstream import ReplicaUpstream
from milo.gateway.weights import built_in, cached
from milo.runtime.bench import Bench
from milo.testing.scripted_model import (
    JSON,
    Answer,
    ScriptedServer,
    ScriptedUpstream,
    body_of,
    in_turn,
)
from milo.testing.upstream_cases import REQUEST, UpstreamCases

ANSWER = Answer(text="Paris it is.", cached_tokens=3)
NOBODY = "http://127.0.0.1:9/v1"


async def dropped(chunk: object) -> None:
    """Takes a chunk that nobody looks at."""


def tool_user(request: JSON, nth: int) -> Answer:
    """Calls two of the tools that it is offered, then says what it was told."""
    told = [str(m["content"]) for m in request["messages"] if m["role"] == "tool"]
    offered = {tool["function"]["name"] for tool in request.get("tools", [])}
    if told or not offered >= {"read", "smoke"}:
        return Answer(text=f"told: {', '.join(told)}")
    made = [
        {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": given}}
        for name, given in (("read", '{"path": "main.py"}'), ("smoke", "{}"))
    ]
    return Answer(tool_calls=tuple(made), finish_reason="tool_calls")


def talking(upstream: Upstream) -> Converse:
    """A way to converse with an upstream through the line that mutators use."""
    line = Line(
        upstream=upstream,
        pins=Pins(model=upstream.model),
        rng=np.random.default_rng(0),
        policy=Policy(tries=1),
    )
    return Bench(None, SessionCaller(lambda: line), "s").converse  # type: ignore[arg-type]


class TestScripted(UpstreamCases):
    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Upstream]:
        yield ScriptedUpstream(in_turn([ANSWER]))

    def unreachable(self) -> Upstream | None:
        return None


class TestHttp(UpstreamCases):
    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Upstream]:
        async with ScriptedServer(in_turn([ANSWER])) as server:
            upstream = HttpUpstream(server.base_url, "http", wire_model="m", api_key="canary")
            yield upstream
            await upstream.close()

    def unreachable(self) -> Upstream | None:
        return HttpUpstream(NOBODY, "http", wire_model="m")


class TestReplay(UpstreamCases):
    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Upstream]:
        body = body_of(ANSWER, REQUEST, 1)
        raw = body["usage"]
        assert isinstance(raw, dict)
        usage = Usage(
            uncached_input=raw["prompt_tokens"] - 3,
            cached_input=3,
            output=raw["completion_tokens"],
            calls=1,
        )
        exchange = Exchange(request=REQUEST, response=body, status=200, seconds=1, usage=usage)
        yield ReplayUpstream("recorded", lambda scope: (exchange,) * 4)


@pytest.mark.timeout(300)
class TestLitellm(UpstreamCases):
    """The one place where the tests pay for importing litellm."""

    @pytest.fixture(autouse=True)
    def litellm_s_own_warnings(self) -> Iterator[None]:
        """Its dependencies deprecate each other; that is not ours to mend."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Upstream]:
        async with ScriptedServer(in_turn([ANSWER])) as server:
            upstream = LitellmUpstream(
                "openai/scripted", "litellm", api_key="canary", base_url=server.base_url
            )
            yield upstream
            await upstream.close()

    def unreachable(self) -> Upstream | None:
        return LitellmUpstream("openai/scripted", "litellm", api_key="canary", base_url=NOBODY)

    async def test_parameters_that_the_provider_lacks_are_dropped(self) -> None:
        async with self.opened() as upstream:
            done = await upstream.complete({**REQUEST, "top_k": 5, "min_p": 0.1}, "drop", 0)
        assert done.status == 200

    async def test_an_unknown_price_is_not_zero(self) -> None:
        async with self.opened() as upstream:
            assert (await upstream.complete(REQUEST, "price", 0)).usage.dollars is None

    async def test_a_stream_is_metered_as_the_whole_answer_is(self) -> None:
        async with self.opened() as upstream:
            assert isinstance(upstream, StreamingUpstream)
            streamed = await upstream.stream(REQUEST, "usage", 0, dropped)
            whole = await upstream.complete(REQUEST, "usage", 1)
        assert streamed.usage == whole.usage and not streamed.usage.estimated

    async def test_a_stream_whose_provider_tells_no_usage_is_counted_and_says_so(self) -> None:
        """litellm counts such a stream itself, and passes its count off as the provider's."""
        silent = in_turn([replace(ANSWER, tells_usage=False)])
        done = []
        async with ScriptedServer(silent) as server:
            for upstream in (
                LitellmUpstream("openai/m", "l", api_key="canary", base_url=server.base_url),
                HttpUpstream(server.base_url, "h", wire_model="m"),
            ):
                done.append(await upstream.stream(REQUEST, "silent", 0, dropped))
                await upstream.close()
        assert done[0].usage == done[1].usage
        assert done[0].usage.estimated and done[0].usage.output > 0

    async def test_a_models_own_tool_calls_are_made_and_answered(self) -> None:
        """What the built-in agent loop and the orchestrator live on."""
        server = ScriptedServer(tool_user)
        async with server:
            upstream = LitellmUpstream(
                "openai/scripted", "litellm", api_key="canary", base_url=server.base_url
            )
            dialogue = Dialogue(talking(upstream), TOOLS, [{"role": "user", "content": "Begin."}])
            first = await dialogue.ask()
            dialogue.answer([(call, f"result of {call.tool}") for call in first.calls])
            second = await dialogue.ask()
            await upstream.close()
        assert [(call.tool, call.arguments) for call in first.calls] == [
            ("read", {"path": "main.py"}),
            ("smoke", {}),
        ]
        assert not second.calls
        assert second.text == "told: result of read, result of smoke"

    @pytest.mark.parametrize("status", [400, 401, 429, 500])
    async def test_the_provider_s_errors_keep_their_status(self, status: int) -> None:
        failing = in_turn([Answer(status=status, error="says no")])
        async with ScriptedServer(failing) as server:
            upstream = LitellmUpstream(
                "openai/scripted", "litellm", api_key="canary-1f", base_url=server.base_url
            )
            done = await upstream.complete(REQUEST, "errors", 0)
            await upstream.close()
        assert done.status == status
        assert "says no" in str(done.body)
        assert "canary-1f" not in str(done.body)
        assert server.tally.calls == 1


@pytest.mark.model
class TestEmbedded(UpstreamCases):
    @pytest.fixture(autouse=True)
    def weights(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        known = built_in("local-small")
        found = cached(known, user_cache_path("milo") / "weights")
        if found is None:
            pytest.skip(
                f"{known.title} is not in the cache (milo run model=local-small fetches it)"
            )
        self.path = found

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Upstream]:
        settings = ServerSettings(context=512, parallel=2, threads=1)
        server = embedded_server(self.path, settings, self.folder / "model.log")
        upstream = ReplicaUpstream((server,), "local-small[x]", wire_model="local")
        yield upstream
        await upstream.close()
        assert not server.alive
