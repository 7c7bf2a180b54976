"""What providers' own answers come to in the meter, by way of litellm, whole and streamed."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from milo.core.ports import Completion
from milo.gateway.litellm_upstream import LitellmUpstream
from milo.gateway.price_book import snapshot
from milo.gateway.prices import dollars

KEY = "canary-9c1b-key"
ASKED: dict[str, Any] = {
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "max_tokens": 64,
}


def _fixtures() -> Any:
    """The providers' answers; loaded by path, because tests are no package."""
    path = Path(__file__).parent / "fixtures" / "providers.py"
    spec = importlib.util.spec_from_file_location("provider_fixtures", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


FIXTURES = _fixtures()
PROVIDERS = FIXTURES.PROVIDERS
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def litellm_s_own_warnings() -> Iterator[None]:
    """Its dependencies deprecate each other; that is not ours to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@asynccontextmanager
async def provider(fixture: Any) -> AsyncIterator[LitellmUpstream]:
    """A loopback server that gives the fixture's answers to whoever holds the key."""

    async def answer(request: web.Request) -> web.Response:
        given = request.headers.get("x-api-key") or request.headers.get("Authorization", "")
        assert KEY in given
        if (await request.json()).get("stream"):
            return web.Response(body=fixture.stream(), content_type="text/event-stream")
        return web.json_response(fixture.whole)

    app = web.Application()
    app.router.add_post(fixture.path, answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    upstream = LitellmUpstream(
        fixture.model, "m", api_key=KEY, base_url=f"http://{host}:{port}{fixture.under}"
    )
    yield upstream
    await upstream.close()
    await runner.cleanup()


async def asked(upstream: LitellmUpstream, streaming: bool) -> Completion:
    seen: list[Any] = []

    async def emit(chunk: Any) -> None:
        seen.append(chunk)

    if not streaming:
        return await upstream.complete(ASKED, "s", 0)
    done = await upstream.stream(ASKED, "s", 0, emit)
    said = [c["choices"][0]["delta"].get("content") or "" for c in seen if c.get("choices")]
    assert "".join(said) == FIXTURES.TEXT
    return done


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("fixture", PROVIDERS, ids=lambda fixture: fixture.model)
async def test_a_provider_s_answer_is_metered_by_kind(fixture: Any, streaming: bool) -> None:
    async with provider(fixture) as upstream:
        done = await asked(upstream, streaming)
    choices: Any = done.body["choices"]
    assert (done.status, choices[0]["message"]["content"]) == (200, FIXTURES.TEXT)
    assert done.usage == fixture.usage


async def test_cached_tokens_beside_the_input_cost_what_the_provider_charges() -> None:
    """Anthropic: a read costs a tenth of input, a write a quarter more; none is charged twice."""
    price = snapshot([FIXTURES.ANTHROPIC.model]).price(FIXTURES.ANTHROPIC.model)
    assert price is not None
    async with provider(FIXTURES.ANTHROPIC) as upstream:
        done = await asked(upstream, True)
    base = price.uncached_input
    inputs = 106 * base + 1000 * base * 0.1 + 900 * base * 1.25
    assert dollars(done.usage, price) == pytest.approx((inputs + 300 * price.output) / 1e6)
