"""OpenAI's error shape, what a harness may see of a completion, and the redaction of secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

JSON = Mapping[str, object]
KEY_SHAPES = re.compile(r"(?i)\bbearer\s+[\w.~+/=-]{8,}|\bsk-[\w*-]{8,}")
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
