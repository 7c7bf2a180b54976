"""Usage, redaction and stream chunks in OpenAI's shapes."""

from __future__ import annotations

import json

import pytest

from milo.core.attempt import Usage
from milo.gateway.litellm_upstream import price_in
from milo.gateway.prices import FREE, Price, dollars
from milo.gateway.wire import (
    error_message,
    parse_usage,
    public_body,
    redact,
    redact_body,
    sse_chunks,
)
from milo.testing.scripted_model import Answer, body_of

CANARY = "canary-7f3a-key"


def test_no_token_stands_under_two_kinds() -> None:
    body = {
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 60, "cache_creation_tokens": 10},
            "completion_tokens_details": {"reasoning_tokens": 5},
        }
    }
    usage = parse_usage(body, 0)
    assert usage == Usage(
        uncached_input=30,
        cached_input=60,
        cache_write=10,
        output=20,
        reasoning=5,
        calls=1,
        dollars=None,
    )
    assert usage.tokens == 120


def test_more_cached_than_prompt_tokens_never_count_negative() -> None:
    raw = {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 50}}
    usage = parse_usage({"usage": raw}, 0)
    assert (usage.uncached_input, usage.cached_input) == (0, 10)


@pytest.mark.parametrize("value", [None, "12", -3, True, 1.5])
def test_counts_that_are_no_counts_are_zero(value: object) -> None:
    assert parse_usage({"usage": {"prompt_tokens": value}}, 0).tokens == 0


def test_a_body_without_usage_is_estimated_and_says_so() -> None:
    usage = parse_usage({"choices": [{"message": {"content": "x" * 400}}]}, 4000)
    assert usage.estimated
    assert 900 < usage.uncached_input < 1100
    assert 90 < usage.output < 130


def test_unknown_price_is_not_zero_price() -> None:
    usage = Usage(uncached_input=1_000_000, cached_input=1_000_000, output=1_000_000)
    assert dollars(usage, None) is None
    assert dollars(usage, FREE) == 0.0
    assert dollars(usage, Price(uncached_input=2, cached_input=0.5, output=8)) == 10.5


def test_litellm_s_map_is_read_with_and_without_the_provider_s_name() -> None:
    entry = {"input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6}
    price = price_in({"m": entry}, "openai/m")
    assert price is not None
    assert (price.uncached_input, price.cached_input, price.output) == pytest.approx((2, 2, 8))
    assert price_in({"m": entry}, "openai/other") is None
    assert price_in({"m": {"input_cost_per_token": 1e-6}}, "m") is None


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


def events(body: dict[str, object], include_usage: bool) -> list[dict[str, object]]:
    raw = b"".join(sse_chunks(body, include_usage)).decode()
    parts = [part.removeprefix("data: ") for part in raw.strip().split("\n\n")]
    assert parts[-1] == "[DONE]"
    return [json.loads(part) for part in parts[:-1]]


def test_a_completion_streams_as_deltas_and_a_finish_reason() -> None:
    first, last = events(body_of(Answer(text="a b"), {"model": "m"}, 1), False)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": "a b"}  # type: ignore[index]
    assert last["choices"][0]["finish_reason"] == "stop"  # type: ignore[index]
    assert first["object"] == "chat.completion.chunk"


def test_usage_streams_only_where_it_was_asked_for() -> None:
    *_, last = events(body_of(Answer(text="a b"), {}, 1), True)
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 2  # type: ignore[index]


def test_streamed_tool_calls_carry_their_index() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    first, _ = events(body_of(Answer(tool_calls=(call, call)), {}, 1), False)
    calls = first["choices"][0]["delta"]["tool_calls"]  # type: ignore[index]
    assert [c["index"] for c in calls] == [0, 1]
