"""OpenAI's chat-completions shapes: errors, usage, stream chunks; and the redaction of secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from milo.core.attempt import Usage

JSON = Mapping[str, object]
KEY_SHAPES = re.compile(r"(?i)\bbearer\s+[\w.~+/=-]{8,}|\bsk-[\w*-]{8,}")
BYTES_PER_TOKEN = 4
HIDDEN_KEYS = ("timings", "__verbose", "generation_settings")


def error_body(message: str, code: str, param: str | None = None) -> dict[str, object]:
    """An error as OpenAI clients expect it."""
    kind = "server_error" if code.startswith("provider") else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def error_message(body: JSON) -> str:
    """The words of an error body, however the provider nests them."""
    error = body.get("error", body)
    if isinstance(error, Mapping):
        return str(error.get("message", "") or error.get("code", "") or "no message")
    return str(error)


def error_code(body: JSON) -> str:
    """The code of an error body, "" where it has none."""
    error = body.get("error")
    return str(error.get("code") or "") if isinstance(error, Mapping) else ""


def without_secrets(text: str, secrets: Sequence[str]) -> str:
    """The text without the given secrets; nothing else of a model's answer may change."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[redacted]")
    return text


def redact(text: str, secrets: Sequence[str]) -> str:
    """An error's text without the secrets and without anything shaped like a provider key."""
    return KEY_SHAPES.sub("[redacted]", without_secrets(text, secrets))


def redact_body(body: JSON, secrets: Sequence[str]) -> dict[str, object]:
    """A body whose strings are redacted, whatever their depth."""
    redacted: dict[str, object] = json.loads(redact(json.dumps(body, default=str), secrets))
    return redacted


def answer_without_secrets(body: JSON, secrets: Sequence[str]) -> JSON:
    """A model's answer as it is, unless a secret stands in it."""
    if not any(secrets):
        return body
    text = json.dumps(body, default=str)
    cleaned = without_secrets(text, secrets)
    return body if cleaned == text else json.loads(cleaned)


def public_body(body: JSON, model: str) -> dict[str, object]:
    """A completion as a harness may see it: under the pinned name, without server internals."""
    shown = {key: value for key, value in body.items() if key not in HIDDEN_KEYS}
    if "model" in shown:
        shown["model"] = model
    return shown


def tokens_of_bytes(size: int) -> int:
    """A rough number of tokens in `size` bytes, for reservations and for calls without usage."""
    return size // BYTES_PER_TOKEN + 1


def parse_usage(body: JSON, prompt_bytes: int) -> Usage:
    """The metered usage of a completion, without a price.

    OpenAI's `prompt_tokens` contain the cached and the cache-writing ones: they are taken out, so
    that no token stands under two kinds. A body without usage is estimated and marked so.
    """
    raw = body.get("usage")
    if not isinstance(raw, Mapping):
        size = len(json.dumps(body.get("choices", ""), default=str))
        return Usage(
            uncached_input=tokens_of_bytes(prompt_bytes),
            output=tokens_of_bytes(size),
            calls=1,
            dollars=None,
            estimated=True,
        )
    prompt, output = _count(raw, "prompt_tokens"), _count(raw, "completion_tokens")
    details = _mapping(raw, "prompt_tokens_details")
    cached = min(prompt, _count(details, "cached_tokens"))
    written = min(prompt - cached, _count(details, "cache_creation_tokens"))
    return Usage(
        uncached_input=prompt - cached - written,
        cached_input=cached,
        cache_write=written,
        output=output,
        reasoning=_count(_mapping(raw, "completion_tokens_details"), "reasoning_tokens"),
        calls=1,
        dollars=None,
    )


def _mapping(raw: JSON, key: str) -> JSON:
    value = raw.get(key)
    return value if isinstance(value, Mapping) else {}


def _count(raw: JSON, key: str) -> int:
    value = raw.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def sse_chunks(body: JSON, include_usage: bool) -> Iterator[bytes]:
    """A finished completion as server-sent events: the deltas, the ends, usage if asked, DONE."""
    head = {key: body.get(key) for key in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        index = choice.get("index", 0)
        delta = _delta(choice.get("message") or {})
        yield _event({**head, "choices": [_choice(index, delta, None)]})
        yield _event({**head, "choices": [_choice(index, {}, choice.get("finish_reason"))]})
    if include_usage:
        yield _event({**head, "choices": [], "usage": body.get("usage")})
    yield b"data: [DONE]\n\n"


def _delta(message: JSON) -> dict[str, object]:
    delta = {key: value for key, value in message.items() if value is not None}
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(calls)]
    return delta


def _choice(index: int, delta: JSON, reason: object) -> dict[str, object]:
    return {"index": index, "delta": delta, "finish_reason": reason}


def _event(chunk: JSON) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
