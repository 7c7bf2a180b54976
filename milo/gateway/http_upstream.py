"""Any OpenAI-compatible server as an upstream: a provider's `base_url`, or the embedded model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from time import monotonic

import aiohttp

from milo.core.attempt import Usage
from milo.core.errors import ModelError
from milo.core.ports import Completion
from milo.gateway.prices import Price, dollars
from milo.gateway.wire import error_body, error_message, parse_usage, redact, without_secrets

MAX_REPLY_BYTES = 32 * 1024 * 1024
CONNECT_S = 10.0


class HttpUpstream:
    """An `Upstream` with pooled connections on the event loop that first uses it.

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
        sent = json.dumps({**request, "model": self._wire_model}).encode()
        status, text = await self._post(sent)
        clean = redact if status >= 300 else without_secrets
        body = _parse(status, clean(text, (self._key,)))
        usage = Usage(calls=1)
        if status < 300:
            usage = parse_usage(body, len(sent))
            usage = replace(usage, dollars=dollars(usage, self._price))
        return Completion(status=status, body=body, usage=usage, seconds=monotonic() - began)

    async def check(self) -> None:
        """One call of one token; raises `ModelError` with what to look at."""
        request = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
        done = await self.complete(request, "check", 0)
        if done.status >= 300:
            said = f"HTTP {done.status}: {error_message(done.body)}"
            raise ModelError(f"model {self._label} at {self._url} does not answer: {said}")

    async def close(self) -> None:
        """Close the pool; a later call opens another."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _post(self, data: bytes) -> tuple[int, str]:
        try:
            async with self._pool().post(
                f"{self._url}/chat/completions", data=data, allow_redirects=False
            ) as response:
                raw = await response.content.read(MAX_REPLY_BYTES + 1)
                while not response.content.at_eof() and len(raw) <= MAX_REPLY_BYTES:
                    raw += await response.content.read(MAX_REPLY_BYTES + 1 - len(raw))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            text = redact(f"{type(error).__name__}: {error}", (self._key,))
            raise ModelError(f"no answer from {self._url} ({text})") from None
        if len(raw) > MAX_REPLY_BYTES:
            raise ModelError(f"{self._url} answered with more than {MAX_REPLY_BYTES} bytes")
        return response.status, raw.decode(errors="replace")

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


def _parse(status: int, text: str) -> Mapping[str, object]:
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if isinstance(body, dict) and (status >= 300 or isinstance(body.get("choices"), list)):
        return body
    if status >= 300:
        return error_body(f"HTTP {status}: {text[:200]}", "provider_error")
    raise ModelError(f"the server's answer is no chat completion: {text[:200]!r}")
