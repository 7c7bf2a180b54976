"""Any litellm model as an upstream. litellm is imported here only, on first use, in a thread.

Importing it takes seconds and 190 MB, and would fetch a price map from the network if it were let:
prices come from the run's own book.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Mapping
from time import monotonic
from types import ModuleType

from milo.core.attempt import Usage
from milo.core.errors import ModelError
from milo.core.ports import Completion, Emit
from milo.gateway.chunks import Assembly
from milo.gateway.formats import mapping
from milo.gateway.http_upstream import STREAMED, retry_after
from milo.gateway.outside import leniently
from milo.gateway.prices import Price
from milo.gateway.usage import metered
from milo.gateway.wire import error_body, error_message, redact, without_secrets

LOCAL_PRICES = "LITELLM_LOCAL_MODEL_COST_MAP"
LOUD = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "anthropic", "httpx", "httpcore")
"""Loggers that stay silent whatever the environment asks of them: Ray keeps what they say."""


class LitellmUpstream:
    """An `Upstream` on litellm's `acompletion`.

    `name` is litellm's (``"anthropic/claude-…"``), `api_key` the provider's key, passed in and
    never taken from a request; `price` is None where it is unknown. Parameters that the provider
    does not know are dropped. It streams. A provider that tells no usage is counted as `metered`
    does it, for litellm's own count of a stream does not say that it is one.
    """

    def __init__(
        self,
        name: str,
        label: str,
        *,
        api_key: str = "",
        base_url: str = "",
        price: Price | None = None,
    ) -> None:
        self._name = name
        self._label = label
        self._key = api_key
        self._base_url = base_url
        self._price = price
        self._litellm: ModuleType | None = None
        self._errors: type[Exception] = ModelError
        self._loading = asyncio.Lock()

    @property
    def model(self) -> str:
        """The label."""
        return self._label

    async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
        """One `acompletion`; a provider's HTTP error becomes its status, others `ModelError`."""
        litellm = await self._library()
        began = monotonic()
        try:
            response = await litellm.acompletion(**self._arguments(request))
        except self._errors as error:
            return self._failed(error, monotonic() - began)
        body = mapping(leniently(without_secrets(response.model_dump_json(), (self._key,))))
        return metered(body, request, self._price, monotonic() - began)

    async def stream(
        self, request: Mapping[str, object], scope: str, nth: int, emit: Emit
    ) -> Completion:
        """One streamed `acompletion`; raises `ModelError` where the stream breaks off."""
        litellm = await self._library()
        began, assembly = monotonic(), Assembly()
        try:
            response = await litellm.acompletion(**self._arguments({**request, **STREAMED}))
            async for piece in response:
                chunk = mapping(leniently(piece.model_dump_json(exclude_none=True)))
                assembly.add(chunk)
                await emit(chunk)
        except self._errors as error:
            failed = self._failed(error, monotonic() - began)
            if assembly.empty:
                return failed
            raise ModelError(f"the stream broke off: {error_message(failed.body)}") from None
        if not assembly.finished:
            raise ModelError(f"the stream from {self._name} broke off")
        whole = assembly.body()
        if not _told_usage(response):
            whole.pop("usage", None)
        body = json.loads(without_secrets(json.dumps(whole), (self._key,)))
        return metered(body, request, self._price, monotonic() - began)

    async def check(self) -> Usage:
        """One call of one token; raises `ModelError` with what to look at."""
        request = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 16}
        done = await self.complete(request, "check", 0)
        if done.status >= 400:
            said = error_message(done.body)
            raise ModelError(f"model {self._name} does not answer: HTTP {done.status}: {said}")
        return done.usage

    async def close(self) -> None:
        """Close the connections that litellm keeps, where it was loaded."""
        if self._litellm is not None:
            await self._litellm.close_litellm_async_clients()

    def _arguments(self, request: Mapping[str, object]) -> dict[str, object]:
        own: dict[str, object] = {"model": self._name, "drop_params": True, "num_retries": 0}
        if self._key:
            own["api_key"] = self._key
        if self._base_url:
            own["base_url"] = self._base_url
        return {**request, **own, "max_retries": 0}

    async def _library(self) -> ModuleType:
        async with self._loading:
            if self._litellm is None:
                litellm, self._errors = await asyncio.to_thread(_load)
                self._litellm = litellm
            return self._litellm

    def _failed(self, error: Exception, seconds: float) -> Completion:
        status = getattr(error, "status_code", None)
        text = redact(f"{getattr(error, 'message', '') or error}", (self._key,))
        kind = type(error).__name__
        if not isinstance(status, int) or status < 400 or _never_connected(error):
            raise ModelError(f"no answer from {self._name} ({kind}: {text})") from None
        body = error_body(text, str(getattr(error, "code", "") or kind))
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        return Completion(
            status=status,
            body=body,
            usage=Usage(calls=1),
            seconds=seconds,
            retry_after_s=retry_after(headers),
        )


def _told_usage(stream: object) -> bool:
    """Whether a chunk of the provider's held usage; of a stream that keeps none it is believed."""
    kept = getattr(stream, "chunks", None)
    if not isinstance(kept, list):
        return True
    return any(getattr(chunk, "usage", None) is not None for chunk in kept)


def _never_connected(error: BaseException | None) -> bool:
    """Whether a failed connection is behind it: litellm gives that a made-up status of 500."""
    while error is not None:
        if "Connection" in type(error).__name__:
            return True
        error = error.__cause__ or error.__context__
    return False


def _load() -> tuple[ModuleType, type[Exception]]:
    """Import litellm quietly; the module and the base class of the errors it raises."""
    os.environ.setdefault(LOCAL_PRICES, "True")
    import litellm
    import openai

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    for name in LOUD:  # they print requests, addresses with passwords, and providers' errors
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return litellm, openai.OpenAIError
