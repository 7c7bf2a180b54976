"""The ways to a model: over HTTP, litellm's own words, and the embedded server's start."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from gateway_scene import MakeLine, ask

from milo.core.errors import ModelError
from milo.core.ports import Caps
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.litellm_upstream import LitellmUpstream
from milo.gateway.prices import FREE, Price
from milo.gateway.session import Session
from milo.testing.scripted_model import Answer, ScriptedServer, always, in_turn

CANARY = "canary-e21d-key"


def http(server: ScriptedServer, **options: Any) -> HttpUpstream:
    options = {"wire_model": "wire", **options}
    return HttpUpstream(server.base_url, "label", **options)


async def test_the_key_goes_to_the_provider_and_nowhere_else(
    make_line: MakeLine, caplog: pytest.LogCaptureFixture
) -> None:
    """The answers echo the key in every way a careless provider might."""
    caplog.set_level(logging.DEBUG)
    answers = [
        Answer(text=f"your key is {CANARY}"),
        Answer(status=400, error=f"bad {CANARY}"),
        Answer(status=401, error=f"no such key {CANARY}"),
        Answer(status=404, error=f"{CANARY}"),
        Answer(status=500, error=f"{CANARY}"),
    ]
    seen = ""
    async with ScriptedServer(in_turn(answers)) as server:
        upstream = http(server, api_key=CANARY)
        for _ in answers:
            session = Session(make_line(upstream, secrets=(CANARY,)), "s", Caps(), 1000)
            seen += repr(await session.ask(ask())) + repr(await session.close())
        assert server.tally.headers[0]["Authorization"] == f"Bearer {CANARY}"
        await server.stop()
        with pytest.raises(ModelError) as gone:
            await upstream.complete(ask(), "s", 0)
        await upstream.close()
    assert CANARY not in seen + str(gone.value) + caplog.text


async def test_the_model_on_the_wire_is_the_provider_s_name() -> None:
    async with ScriptedServer(always("a")) as server:
        upstream = http(server)
        await upstream.complete(ask(model="label"), "s", 0)
        await upstream.check()
        await upstream.close()
    assert [request["model"] for request in server.tally.requests] == ["wire", "wire"]


async def test_prices_are_charged_by_kind_of_token() -> None:
    answer = Answer(text="a", prompt_tokens=100, cached_tokens=60, output_tokens=10)
    price = Price(uncached_input=1e6, cached_input=1e5, output=2e6)
    async with ScriptedServer(in_turn([answer])) as server:
        priced, free, unknown = http(server, price=price), http(server, price=FREE), http(server)
        dollars = [(await u.complete(ask(), "s", 0)).usage.dollars for u in (priced, free, unknown)]
        for upstream in (priced, free, unknown):
            await upstream.close()
    assert dollars == [40 + 6 + 20, 0.0, None]


@pytest.mark.parametrize(
    ("status", "key", "hint"),
    [
        (404, "", "it serves scripted"),
        (401, "", "it was given no key"),
        (401, CANARY, "it was given a key"),
    ],
)
async def test_a_check_tells_why_the_model_does_not_answer(
    status: int, key: str, hint: str
) -> None:
    """A wrong name and a missing key are what goes wrong with a server of one's own."""
    async with ScriptedServer(in_turn([Answer(status=status, error=f"no {key}")])) as server:
        upstream = http(server, api_key=key)
        with pytest.raises(ModelError, match=f"model wire .*HTTP {status}: no .*{hint}") as told:
            await upstream.check()
        await upstream.close()
    assert CANARY not in str(told.value)


async def test_a_server_that_lists_no_models_is_told_as_it_is() -> None:
    runner, url = await serve_text("<html>", 404)
    upstream = HttpUpstream(url, "m", wire_model="m")
    with pytest.raises(ModelError, match=r"HTTP 404.*most addresses end in /v1"):
        await upstream.check()
    await upstream.close()
    await runner.cleanup()


async def serve_text(text: str, status: int = 200) -> tuple[web.AppRunner, str]:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=text, status=status, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_post("/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


@pytest.mark.parametrize("text", ["", "<html>", "[]", "{}", '{"choices": 3}'])
async def test_an_answer_that_is_no_completion_is_the_provider_s_failure(text: str) -> None:
    runner, url = await serve_text(text)
    upstream = HttpUpstream(url, "m", wire_model="m")
    with pytest.raises(ModelError, match="no chat completion"):
        await upstream.complete(ask(), "s", 0)
    await upstream.close()
    await runner.cleanup()


@pytest.mark.parametrize("status", [502, 307])
async def test_gateways_pages_and_redirects_are_errors_with_their_status(status: int) -> None:
    """A redirect is not followed: the key would go along."""
    runner, url = await serve_text("<html>down</html>", status)
    upstream = HttpUpstream(url, "m", wire_model="m", api_key=CANARY)
    done = await upstream.complete(ask(), "s", 0)
    assert done.status >= 400 if status == 502 else done.status == 307
    assert "error" in done.body
    await upstream.close()
    await runner.cleanup()


class Refused(Exception):
    """Stands for the class that litellm's errors share."""

    def __init__(self, message: str, status_code: int | None) -> None:
        self.message, self.status_code = message, status_code
        super().__init__(message)


class APIConnectionError(Refused):
    """litellm gives it status 500, though no answer came."""


def with_library(upstream: LitellmUpstream, outcome: Any) -> list[dict[str, Any]]:
    """Put a stand-in in litellm's place: importing it takes seconds."""
    sent: list[dict[str, Any]] = []

    async def acompletion(**arguments: Any) -> Any:
        sent.append(arguments)
        if isinstance(outcome, Exception):
            raise outcome
        return SimpleNamespace(model_dump_json=lambda: outcome)

    upstream._litellm = SimpleNamespace(acompletion=acompletion)  # type: ignore[assignment]
    upstream._errors = Refused
    return sent


async def test_litellm_gets_our_key_and_model_whatever_the_request_says() -> None:
    upstream = LitellmUpstream("openai/m", "label", api_key=CANARY, base_url="http://ours")
    sent = with_library(upstream, f'{{"choices": [], "x": "{CANARY}"}}')
    done = await upstream.complete(ask(model="label", api_key="theirs"), "s", 0)
    (arguments,) = sent
    assert (arguments["model"], arguments["api_key"]) == ("openai/m", CANARY)
    assert (arguments["drop_params"], arguments["num_retries"]) == (True, 0)
    assert CANARY not in repr(done)
    assert upstream.model == "label"


@pytest.mark.parametrize("status", [400, 401, 429, 503])
async def test_litellm_s_errors_keep_their_status(status: int) -> None:
    upstream = LitellmUpstream("openai/m", "label", api_key=CANARY)
    with_library(upstream, Refused(f"refused {CANARY}", status))
    done = await upstream.complete(ask(), "s", 0)
    assert done.status == status
    assert "refused [redacted]" in str(done.body)
    with pytest.raises(ModelError, match=f"HTTP {status}"):
        await upstream.check()


@pytest.mark.parametrize("error", [Refused("odd", None), APIConnectionError("gone", 500)])
async def test_litellm_without_an_answer_is_a_model_error(error: Exception) -> None:
    upstream = LitellmUpstream("openai/m", "label")
    with_library(upstream, error)
    with pytest.raises(ModelError, match="no answer from openai/m"):
        await upstream.complete(ask(), "s", 0)


async def test_a_litellm_that_was_never_used_is_never_imported() -> None:
    upstream = LitellmUpstream("openai/m", "label")
    loaded = "litellm" in sys.modules
    await upstream.close()
    assert ("litellm" in sys.modules) == loaded
