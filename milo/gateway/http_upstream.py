"""Any OpenAI-compatible server as an upstream: a provider's `base_url`, or the embedded model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from time import monotonic

import aiohttp

from milo.core.attempt import Usage
from milo.core.errors import ModelError
from milo.core.ports import Completion, Emit
from milo.gateway.chunks import Assembly
from milo.gateway.formats import mapping, objects
from milo.gateway.outside import leniently
from milo.gateway.prices import Price
from milo.gateway.sse import events
from milo.gateway.usage import metered
from milo.gateway.wire import error_body, error_message, redact, without_secrets

MAX_REPLY_BYTES = 32 * 1024 * 1024
MAX_LIST_BYTES, MODELS_SHOWN = 1024 * 1024, 8
CONNECT_S = 10.0
STREAMED: Mapping[str, object] = {"stream": True, "stream_options": {"include_usage": True}}


class HttpUpstream:
    """An `Upstream` with pooled connections on the event loop that first uses it; it streams.

    `label` names the model with its parameters, `api_key` ("" for none) is the provider's. Time
    limits are the line's; only connecting has its own. Redirects are not followed: the key stays.
    """

    def __init__(
        self,
        base_url: str,
        label: str,
        *,
        wire_model: str,
        api_key: str = "",
        price: Price | None = None,
        connections: int = 256,
    ) -> None:
        self._url = base_url.rstrip("/")
        self._label = label
        self._wire_model = wire_model
        self._key = api_key
        self._price = price
        self._connections = connections
        self._client: aiohttp.ClientSession | None = None

    @property
    def model(self) -> str:
        """The label."""
        return self._label

    async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
        """POST the request; raises `ModelError` where no answer in JSON came."""
        began = monotonic()
        async with self._post(request) as response:
            return await self._whole(response, request, began)

    async def stream(
        self, request: Mapping[str, object], scope: str, nth: int, emit: Emit
    ) -> Completion:
        """POST the request for a stream; raises `ModelError` where it breaks off."""
        began, assembly = monotonic(), Assembly()
        async with self._post({**request, **STREAMED}) as response:
            if response.status >= 300 or response.content_type != "text/event-stream":
                return await self._whole(response, request, began)
            async for chunk in events(response.content.iter_any(), MAX_REPLY_BYTES):
                if chunk.get("error"):
                    raise ModelError(self._clean(f"the stream ends in {error_message(chunk)}"))
                assembly.add(chunk)
                await emit(chunk)
        if not assembly.finished:
            raise ModelError(f"the stream from {self._url} broke off")
        body = json.loads(without_secrets(json.dumps(assembly.body()), (self._key,)))
        return metered(body, request, self._price, monotonic() - began)

    async def check(self) -> Usage:
        """One call of one token; raises `ModelError` with what to look at."""
        request = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
        done = await self.complete(request, "check", 0)
        if done.status >= 300:
            said = f"HTTP {done.status}: {error_message(done.body)}"
            raise ModelError(
                f"model {self._wire_model} at {self._url} does not answer: {said} "
                f"({await self._hint(done.status)})"
            )
        return done.usage

    async def _hint(self, status: int) -> str:
        """What the user may look at: the key, or the names under which the server has models."""
        if status in (401, 403):
            return "it was given a key" if self._key else "it was given no key"
        names = await self._served()
        if names:
            return f"it serves {', '.join(names)}"
        return f"it lists no models at {self._url}/models; most addresses end in /v1"

    async def _served(self) -> list[str]:
        """The models that the server lists; none where it lists nothing in time."""
        limit = aiohttp.ClientTimeout(total=CONNECT_S)
        try:
            async with self._pool().get(
                f"{self._url}/models", allow_redirects=False, timeout=limit
            ) as response:
                raw = (await response.content.read(MAX_LIST_BYTES)).decode(errors="replace")
            found = objects(mapping(leniently(raw)).get("data"))
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            return []
        return [self._clean(str(model.get("id"))) for model in found[:MODELS_SHOWN]]

    async def close(self) -> None:
        """Close the pool; a later call opens another."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    @asynccontextmanager
    async def _post(self, request: Mapping[str, object]) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to a request; a connection that fails at any point is a `ModelError`."""
        data = json.dumps({**request, "model": self._wire_model}).encode()
        try:
            async with self._pool().post(
                f"{self._url}/chat/completions", data=data, allow_redirects=False
            ) as response:
                yield response
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            text = self._clean(f"{type(error).__name__}: {error}")
            raise ModelError(f"no answer from {self._url} ({text})") from None

    async def _whole(
        self, response: aiohttp.ClientResponse, request: Mapping[str, object], began: float
    ) -> Completion:
        """An answer in one piece: a completion, or an error."""
        raw = await response.content.read(MAX_REPLY_BYTES + 1)
        while not response.content.at_eof() and len(raw) <= MAX_REPLY_BYTES:
            raw += await response.content.read(MAX_REPLY_BYTES + 1 - len(raw))
        if len(raw) > MAX_REPLY_BYTES:
            raise ModelError(f"{self._url} answered with more than {MAX_REPLY_BYTES} bytes")
        status, text = response.status, raw.decode(errors="replace")
        if status < 300:
            body = _parse(status, without_secrets(text, (self._key,)))
            return metered(body, request, self._price, monotonic() - began)
        return Completion(
            status=status,
            body=_parse(status, self._clean(text)),
            usage=Usage(calls=1),
            seconds=monotonic() - began,
            retry_after_s=retry_after(response.headers),
        )

    def _clean(self, text: str) -> str:
        return redact(text, (self._key,))

    def _pool(self) -> aiohttp.ClientSession:
        if self._client is None:
            headers = {"Content-Type": "application/json"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            self._client = aiohttp.ClientSession(
                headers=headers,
                connector=aiohttp.TCPConnector(limit=self._connections),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            )
        return self._client


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that a provider asks to be left alone; 0 where it says nothing in seconds."""
    try:
        seconds = float(headers.get("Retry-After", "0"))
    except ValueError:
        return 0.0
    return seconds if 0.0 <= seconds < 3600.0 else 0.0


def _parse(status: int, text: str) -> Mapping[str, object]:
    try:
        body = leniently(text)
    except ValueError:
        body = None
    if isinstance(body, dict) and (status >= 300 or isinstance(body.get("choices"), list)):
        return body
    if status >= 300:
        return error_body(f"HTTP {status}: {text[:200]}", "provider_error")
    raise ModelError(f"the server's answer is no chat completion: {text[:200]!r}")
