"""ℳ and its parameters never change, whatever a harness asks for."""

from __future__ import annotations

import json

import pytest

from milo.gateway.formats import BadRequest
from milo.gateway.pins import SAMPLING_OF_LLAMA, Pins, model_label, parse_request, pin

MESSAGES = [{"role": "user", "content": "hi"}]
PINS = Pins(model="frozen", temperature=0.2)


def test_model_and_temperature_are_replaced_and_named() -> None:
    pinned = pin({"messages": MESSAGES, "model": "dearer", "temperature": 1.5}, PINS, 100)
    assert pinned.request["model"] == "frozen"
    assert pinned.request["temperature"] == 0.2
    assert pinned.names == ("max_tokens", "model", "temperature")


def test_what_already_agrees_with_the_pins_is_not_named() -> None:
    asked = {"messages": MESSAGES, "model": "frozen", "temperature": 0.2, "max_tokens": 7}
    pinned = pin(asked, PINS, 100)
    assert pinned.names == ()
    assert pinned.request == asked


def test_temperature_is_the_harness_s_where_the_plan_leaves_it() -> None:
    asked = {"messages": MESSAGES, "temperature": 1.5, "seed": 4}
    pinned = pin(asked, Pins(model="frozen"), None)
    assert pinned.request == {**asked, "model": "frozen"}


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens"])
def test_output_limits_are_clamped_but_never_raised(key: str) -> None:
    assert pin({"messages": MESSAGES, key: 5000}, PINS, 100).request[key] == 100
    assert pin({"messages": MESSAGES, key: 50}, PINS, 100).request[key] == 50


def test_an_output_limit_is_set_where_none_was_asked() -> None:
    assert pin({"messages": MESSAGES}, PINS, 100).request["max_tokens"] == 100
    assert pin({"messages": MESSAGES, "max_tokens": None}, PINS, 100).request["max_tokens"] == 100


@pytest.mark.parametrize(
    "key", ["api_base", "api_key", "base_url", "fallbacks", "web_search_options", "n_predict"]
)
def test_parameters_that_redirect_or_buy_more_are_dropped_and_named(key: str) -> None:
    pinned = pin({"messages": MESSAGES, key: "x"}, PINS, None)
    assert key not in pinned.request
    assert key in pinned.names


def test_llama_sampling_passes_only_where_it_is_allowed() -> None:
    asked = {"messages": MESSAGES, "grammar": 'root ::= "a"'}
    assert "grammar" not in pin(asked, PINS, None).request
    allowed = Pins(model="local", extra=SAMPLING_OF_LLAMA)
    assert pin(asked, allowed, None).request["grammar"] == 'root ::= "a"'


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"messages": []}, "messages"),
        ({}, "messages"),
        ({"messages": ["hi"]}, "messages"),
        ({"messages": MESSAGES, "n": 2}, "n"),
        ({"messages": MESSAGES, "n": True}, "n"),
        ({"messages": MESSAGES, "max_tokens": -1}, "max_tokens"),
        ({"messages": MESSAGES, "max_tokens": "lots"}, "max_tokens"),
        ({"messages": MESSAGES, "max_completion_tokens": 1.5}, "max_completion_tokens"),
        ({"messages": MESSAGES, "tools": [{"type": "web_search"}]}, "tools"),
        ({"messages": MESSAGES, "tools": "all"}, "tools"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_the_parameter(
    wrong: dict[str, object], param: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        pin(wrong, PINS, 100)
    assert caught.value.param == param


@pytest.mark.parametrize(
    "grammar",
    ["root ::= " + "(" * 100 + '"a"' + ")" * 100, 'root ::= "a"?' + ' "a"?' * 5000, {"root": "a"}],
    ids=range(3),
)
def test_a_grammar_that_would_end_the_model_server_is_refused(grammar: object) -> None:
    """The server is everybody's: one harness would cost all the others their attempts."""
    with pytest.raises(BadRequest) as caught:
        pin({"messages": MESSAGES, "grammar": grammar}, PINS, 100)
    assert caught.value.param == "grammar"


PLACE = "http://10.0.0.1/?stolen=1"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": PLACE}},
        {"type": "image_url", "image_url": PLACE},
        {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
        {"type": "video_url", "video_url": {"url": PLACE}},
        {"type": "audio_url", "audio_url": {"url": PLACE}},
        {"type": "image", "source": {"type": "url", "url": PLACE}},
        {"type": "tool_result", "content": [{"type": "image", "source": {"url": PLACE}}]},
        {"type": "file", "file": {"file_id": PLACE}},
        {"type": "file", "file": {"file_data": PLACE}},
        {"type": "media", "fileData": {"file_uri": "gs://bucket/stolen"}},
    ],
    ids=range(10),
)
def test_nothing_makes_the_provider_fetch_for_a_harness(part: dict[str, object]) -> None:
    """A server that follows an address carries out what it holds, past every sandbox."""
    with pytest.raises(BadRequest) as caught:
        pin({"messages": [{"role": "user", "content": [part]}]}, PINS, 100)
    assert caught.value.param == "messages"


def test_content_with_its_data_in_it_and_words_about_addresses_pass() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "AAAA"}},
        {"type": "text", "text": f"Write a client for {PLACE}"},
    ]
    asked = {"messages": [{"role": "user", "content": parts}, *MESSAGES]}
    assert pin(asked, PINS, 100).request["messages"] == asked["messages"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[1]",
        b'"text"',
        b'{"temperature": NaN}',
        b'{"temperature": Infinity}',
        b"[" * 100_000,
        b'{"a": ' + b"9" * 10_000 + b"}",
        b'{"a": "\\ud800"}',
        b"\xff\xfe",
    ],
    ids=range(10),
)
def test_a_body_that_is_no_json_object_is_refused(raw: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_request(raw)


def test_escaped_pairs_are_good_json() -> None:
    assert parse_request(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


def test_the_label_is_stable_and_tells_parameters_apart() -> None:
    assert model_label("gpt") == "gpt"
    assert model_label("local", "ab" * 32, 0) == "local[sha256=abababababab,temperature=0]"
    assert model_label("local", "ab" * 32, 0.0) == model_label("local", "ab" * 32, 0)
    assert json.dumps(model_label("local", "", 0.7)) == '"local[temperature=0.7]"'


def test_the_label_tells_limits_of_an_attempt_apart() -> None:
    """What breaks without it: attempts made under other caps are taken for the same measurement."""
    short, long = ({"calls": 3, "tokens": n} for n in (100, 200))
    assert model_label("gpt", limits=short) == "gpt[calls=3,tokens=100]"
    assert model_label("gpt", limits=long) != model_label("gpt", limits=short)
