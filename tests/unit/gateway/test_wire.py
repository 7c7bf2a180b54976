"""Errors and redaction in OpenAI's shapes."""

from __future__ import annotations

import json

import pytest

from milo.gateway.wire import error_message, public_body, redact, redact_body

CANARY = "canary-7f3a-key"


def test_given_secrets_and_key_shapes_are_redacted() -> None:
    text = f"bad key {CANARY}, sk-proj-abcdefgh123, Authorization: Bearer abcdefghijkl"
    cleaned = redact(text, (CANARY, ""))
    assert CANARY not in cleaned and "abcdefgh" not in cleaned
    assert cleaned.count("[redacted]") == 3


def test_secrets_are_redacted_at_any_depth_of_a_body() -> None:
    body = {"error": {"message": [CANARY, {"deep": f"x{CANARY}x"}]}}
    assert CANARY not in json.dumps(redact_body(body, (CANARY,)))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "too long"}}, "too long"),
        ({"error": "flat"}, "flat"),
        ({"message": "bare"}, "bare"),
        ({"error": {"code": "c"}}, "c"),
        ({}, "no message"),
    ],
)
def test_the_words_of_an_error_are_found(body: dict[str, object], words: str) -> None:
    assert error_message(body) == words


def test_the_harness_sees_no_server_internals() -> None:
    shown = public_body({"model": "/home/x.gguf", "timings": {}, "choices": []}, "local")
    assert shown == {"model": "local", "choices": []}
