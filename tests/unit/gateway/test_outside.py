"""JSON from outside: nothing of it may be what no record can hold."""

from __future__ import annotations

import json

import pytest

from milo.gateway.outside import DEEPEST, leniently, strictly
from milo.store.codec import dump_json


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "-Infinity"])
def test_a_harness_that_sends_no_number_is_refused_and_a_provider_s_is_null(number: str) -> None:
    """It could be written into no record: one such number would end the run."""
    text = f'{{"temperature": {number}, "top_p": 0.5}}'
    with pytest.raises(ValueError):
        strictly(text.encode())
    told = leniently(text)
    assert told == {"temperature": None, "top_p": 0.5}
    assert dump_json(told)


@pytest.mark.parametrize("depth", [DEEPEST + 1, 500, 100_000])
def test_endless_nesting_is_refused(depth: int) -> None:
    with pytest.raises(ValueError, match=f"more than {DEEPEST} deep"):
        strictly(nested(depth).encode())


def test_a_large_body_that_is_not_deep_passes() -> None:
    value = {"messages": [{"role": "user", "content": [{"type": "text"}]}] * 500}
    assert strictly(json.dumps(value).encode()) == value
    assert strictly(nested(DEEPEST).encode())


def test_a_provider_s_endless_nesting_is_no_json() -> None:
    with pytest.raises(ValueError, match="deep"):
        leniently(nested(100_000))


def test_half_an_emoji_is_no_json_of_a_harness() -> None:
    with pytest.raises(ValueError):
        strictly(b'{"text": "\\ud83d"}')
    assert strictly(b'{"text": "\\ud83d\\ude00"}') == {"text": "\U0001f600"}
