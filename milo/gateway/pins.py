"""What the gateway fixes in every request, so that ℳ and its parameters never change (SPEC §6).

Only chat-completions parameters pass. The rest is dropped and named: a parameter that redirects
the call, buys a dearer service or lets the provider fetch from the network is no harness's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from milo.core.evidence import NOTHING_FETCHED
from milo.gateway.formats import JSON, BadRequest
from milo.gateway.outside import strictly

PASSED = frozenset(
    {
        "messages",
        "model",
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "seed",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "functions",
        "function_call",
        "response_format",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "n",
        "reasoning_effort",
    }
)
SAMPLING_OF_LLAMA = frozenset({"grammar", "top_k", "min_p", "repeat_penalty"})
STREAMING = frozenset({"stream", "stream_options"})
LIMITS = ("max_tokens", "max_completion_tokens")
MOST_GRAMMAR, DEEPEST_GRAMMAR = 8192, 64
"""Characters, and open brackets. llama.cpp's parser recurses: 50,000 open brackets ended the server
for everybody, and 5,000 optional letters kept it from answering for more than 20 s."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pins:
    """The model as its provider names it, the pinned temperature, and parameters allowed beside
    OpenAI's (`SAMPLING_OF_LLAMA` for a llama server)."""

    model: str
    temperature: float | None = None
    extra: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Pinned:
    """The request that goes upstream, and the names of the parameters that differ from what was
    asked."""

    request: Mapping[str, object]
    names: tuple[str, ...]


def model_label(
    name: str,
    digest: str = "",
    temperature: float | None = None,
    limits: Mapping[str, int] | None = None,
) -> str:
    """The model, its pinned parameters and what one attempt may ask of it (`limits`), in one
    stable string, as attempt keys name it: attempts under other limits are other measurements."""
    parts = [f"sha256={digest[:12]}"] if digest else []
    parts += [] if temperature is None else [f"temperature={float(temperature):g}"]
    parts += [f"{limit}={number}" for limit, number in (limits or {}).items()]
    return f"{name}[{','.join(parts)}]" if parts else name


def parse_request(raw: bytes) -> dict[str, object]:
    """The body as a JSON object; raises `BadRequest` for anything else."""
    try:
        body = strictly(raw)
    except ValueError as error:
        raise BadRequest(f"the body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    return body


def pin(asked: JSON, pins: Pins, output_cap: int | None) -> Pinned:
    """The request with ℳ, its parameters and the output limit fixed.

    Raises `BadRequest` for what cannot be answered: no messages, more than one choice (`n`), a
    limit that is no positive number, a tool that runs at the provider, a picture or file that the
    provider would have to fetch.
    """
    _check(asked)
    allowed = PASSED | pins.extra
    sent = {key: value for key, value in asked.items() if key in allowed and value is not None}
    sent["model"] = pins.model
    sent.pop("n", None)
    if pins.temperature is not None:
        sent["temperature"] = pins.temperature
    _clamp(sent, output_cap)
    names = {key for key in {*asked, *sent} - STREAMING if asked.get(key) != sent.get(key)}
    return Pinned(request=sent, names=tuple(sorted(names - _means_nothing(asked))))


def _clamp(sent: dict[str, object], cap: int | None) -> None:
    if cap is None:
        return
    for key in LIMITS:
        value = sent.get(key)
        if isinstance(value, int):
            sent[key] = min(value, cap)
    if not any(key in sent for key in LIMITS):
        sent["max_tokens"] = cap


def _check(asked: JSON) -> None:
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("'messages' must be a non-empty list", "messages")
    if not all(isinstance(message, dict) for message in messages):
        raise BadRequest("each of 'messages' must be an object", "messages")
    if asked.get("n", 1) not in (1, None) or isinstance(asked.get("n"), bool):
        raise BadRequest("'n' must be 1: ask again for another choice", "n")
    for key in LIMITS:
        value = asked.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise BadRequest(f"'{key}' must be a positive whole number", key)
        if isinstance(value, int) and value < 1:
            raise BadRequest(f"'{key}' must be a positive whole number", key)
    _check_tools(asked.get("tools"))
    _check_grammar(asked.get("grammar"))
    for message in messages:
        _check_data(message.get("content"))


def _check_data(content: object) -> None:
    """A provider that fetches an address for a harness is a way out of the sandbox, and servers
    take more kinds of content than OpenAI's (``video_url``, Anthropic's sources)."""
    if isinstance(content, list):
        for part in content:
            _check_data(part)
    elif isinstance(content, Mapping):
        for key, value in content.items():
            if key == "file_id" and value is not None:
                raise BadRequest(
                    "files must be given as 'file_data', nothing is stored", "messages"
                )
            if isinstance(value, str) and _is_elsewhere(str(key), value):
                raise BadRequest(f"'{key}' must be a 'data:' URL, {NOTHING_FETCHED}", "messages")
            _check_data(value)


def _is_elsewhere(key: str, value: str) -> bool:
    """Whether the value names a place to fetch from. Data alone may be in base64."""
    if key.endswith(("url", "uri")):
        return not value.startswith("data:")
    return key == "file_data" and "://" in value[:64]


def _check_tools(tools: object) -> None:
    if tools is None:
        return
    if not isinstance(tools, list):
        raise BadRequest("'tools' must be a list", "tools")
    for tool in tools:
        if not isinstance(tool, dict) or tool.get("type", "function") != "function":
            raise BadRequest("only tools of type 'function' are served", "tools")


def _check_grammar(grammar: object) -> None:
    if grammar is None:
        return
    if not isinstance(grammar, str) or len(grammar) > MOST_GRAMMAR:
        raise BadRequest(
            f"'grammar' must be a text of at most {MOST_GRAMMAR} characters", "grammar"
        )
    depth = accumulate((c in "([") - (c in ")]") for c in grammar)
    if max(depth, default=0) > DEEPEST_GRAMMAR:
        raise BadRequest(f"'grammar' is nested more than {DEEPEST_GRAMMAR} deep", "grammar")


def _means_nothing(asked: JSON) -> set[str]:
    """Parameters whose absence upstream changes nothing: nulls, and the only choice there is."""
    nothing = {key for key, value in asked.items() if value is None and key not in LIMITS}
    return nothing | ({"n"} if "n" in asked else set())
