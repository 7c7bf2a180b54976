"""Token kinds, however a provider reports them; and counting where it reports nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from milo.core.attempt import Usage
from milo.gateway.messages_stream import usage_of as as_messages
from milo.gateway.responses_shape import usage_of as as_responses
from milo.gateway.tokens import count_tokens
from milo.gateway.usage import chat_usage, parse_usage

FIXTURES = json.loads((Path(__file__).parent / "fixtures" / "usage.json").read_text())


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda f: f["provider"].split(",")[0])
def test_a_provider_s_report_comes_to_the_same_kinds(fixture: dict[str, Any]) -> None:
    usage = parse_usage({"usage": fixture["usage"]}, {})
    assert usage == Usage(**fixture["counts"], calls=1, dollars=None)
    total = fixture["usage"]["total_tokens"]
    assert usage.tokens == total


def test_cached_tokens_in_the_input_or_beside_it_end_as_the_same_figures() -> None:
    inside, beside = FIXTURES[2], FIXTURES[3]
    assert inside["usage"]["prompt_tokens"] != beside["usage"]["prompt_tokens"]
    one, other = (parse_usage({"usage": f["usage"]}, {}) for f in (inside, beside))
    assert one == other


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda f: f["provider"].split(",")[0])
def test_every_wire_reports_the_same_figures(fixture: dict[str, Any]) -> None:
    completion = {"usage": fixture["usage"], "choices": []}
    counts = fixture["counts"]
    messages, responses = as_messages(completion), as_responses(completion)
    assert messages == {
        "input_tokens": counts["uncached_input"],
        "cache_read_input_tokens": counts["cached_input"],
        "cache_creation_input_tokens": counts["cache_write"],
        "output_tokens": counts["output"],
    }
    assert responses["input_tokens"] + responses["output_tokens"] == responses["total_tokens"]
    assert responses["total_tokens"] == sum(messages.values())
    assert responses["output_tokens_details"]["reasoning_tokens"] == counts["reasoning"]


def test_no_token_stands_under_two_kinds() -> None:
    raw = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_creation_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    usage = parse_usage({"usage": raw}, {})
    assert (usage.uncached_input, usage.cached_input, usage.cache_write) == (30, 60, 10)
    assert usage.tokens == 120


def test_more_cached_than_prompt_tokens_never_count_negative() -> None:
    raw = {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 50}}
    usage = parse_usage({"usage": raw}, {})
    assert (usage.uncached_input, usage.cached_input) == (0, 10)


@pytest.mark.parametrize("value", [None, "12", -3, True, 1.5])
def test_counts_that_are_no_counts_are_zero(value: object) -> None:
    assert parse_usage({"usage": {"prompt_tokens": value}}, {}).tokens == 0


WORDS = "The quick brown fox jumps over the lazy dog. "


@pytest.mark.parametrize("usage", [{}, {"usage": None}, {"usage": {"prompt_tokens": 0}}])
def test_a_body_without_usage_is_counted_by_tokenizer_and_says_so(usage: dict[str, Any]) -> None:
    body = {"choices": [{"message": {"content": WORDS * 20}}], **usage}
    request = {"messages": [{"role": "user", "content": WORDS * 40}]}
    counted = parse_usage(body, request)
    assert counted.estimated
    assert counted.output == count_tokens(WORDS * 20) == pytest.approx(200, abs=2)
    assert counted.uncached_input == pytest.approx(400, abs=40)


def test_an_empty_answer_without_usage_still_read_its_prompt() -> None:
    body = {"choices": [{"message": {"content": ""}}]}
    counted = parse_usage(body, {"messages": [{"role": "user", "content": WORDS * 40}]})
    assert counted.estimated and counted.output == 0
    assert counted.uncached_input == pytest.approx(400, abs=40)


def test_calls_and_thoughts_are_output_too() -> None:
    call = {"function": {"name": "run", "arguments": '{"command": "ls -l"}'}}
    plain, full = (
        {"content": "a"},
        {"content": "a", "reasoning_content": WORDS, "tool_calls": [call]},
    )
    counts = [parse_usage({"choices": [{"message": m}]}, {}).output for m in (plain, full)]
    assert counts[1] > counts[0] + 15


def test_a_picture_s_bytes_are_not_counted_as_text() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10_000}}
    request = {"messages": [{"role": "user", "content": [picture]}]}
    assert parse_usage({"choices": [{"message": {"content": "a"}}]}, request).uncached_input < 60


def test_estimated_usage_is_told_to_the_caller_as_it_is_recorded() -> None:
    usage = Usage(uncached_input=3, cached_input=4, cache_write=5, output=6, reasoning=2, calls=1)
    again = parse_usage({"usage": chat_usage(usage)}, {})
    assert again == Usage(
        uncached_input=3,
        cached_input=4,
        cache_write=5,
        output=6,
        reasoning=2,
        calls=1,
        dollars=None,
    )
