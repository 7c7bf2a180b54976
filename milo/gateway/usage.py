"""What a completion cost in tokens, by kind, however its provider reports it.

Sources: the providers' API references (OpenAI, Anthropic, DeepSeek, xAI, Gemini) as recorded in
`tests/unit/gateway/fixtures`. Two habits differ:

* cached tokens stand *in* the input (OpenAI, vLLM, llama.cpp) or *beside* it (Anthropic). In
  chat-completions shape the total decides which: if input and output alone fall short of it by
  the cached ones, they stood beside.
* reasoning stands *in* the output (OpenAI) or beside it (xAI); again the total decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from milo.core.attempt import Usage
from milo.core.ports import Completion
from milo.gateway.prices import Price, dollars
from milo.gateway.tokens import count_tokens

JSON = Mapping[str, object]
READ = (
    ("prompt_tokens_details", "cached_tokens"),
    ("", "cache_read_input_tokens"),
    ("", "prompt_cache_hit_tokens"),
)
WRITTEN = (
    ("prompt_tokens_details", "cache_creation_tokens"),
    ("prompt_tokens_details", "cache_write_tokens"),
    ("", "cache_creation_input_tokens"),
)

READ_BY_MODEL = ("messages", "tools", "functions", "response_format")
"""What of a request the model reads, or may: some servers put the schema into the prompt."""


def parse_usage(body: JSON, request: JSON) -> Usage:
    """The metered usage of a completion, without a price; no token stands under two kinds.

    A completion without usage is counted by a tokenizer, over the request's and its own text, and
    marked as estimated; an empty one too, for its prompt was read.
    """
    raw = _mapping(body, "usage")
    prompt, output, total = (
        _count(raw, f"{kind}_tokens") for kind in ("prompt", "completion", "total")
    )
    if not (prompt or output) and "choices" in body:
        return counted(request, output_text(body))
    read, written = _first(raw, READ), _first(raw, WRITTEN)
    reasoning = _count(_mapping(raw, "completion_tokens_details"), "reasoning_tokens")
    if reasoning and total == prompt + output + reasoning:
        output += reasoning
    if read + written and total == prompt + read + written + output:
        prompt += read + written
    read = min(prompt, read)
    written = min(prompt - read, written)
    return Usage(
        uncached_input=prompt - read - written,
        cached_input=read,
        cache_write=written,
        output=output,
        reasoning=min(reasoning, output),
        calls=1,
        dollars=None,
    )


def metered(body: JSON, request: JSON, price: Price | None, seconds: float) -> Completion:
    """A successful answer with its usage and dollars; a usage that we counted ourselves is put
    into the body too."""
    usage = parse_usage(body, request)
    if usage.estimated:
        body = {**body, "usage": chat_usage(usage)}
    usage = replace(usage, dollars=dollars(usage, price))
    return Completion(status=200, body=body, usage=usage, seconds=seconds)


def chat_usage(usage: Usage) -> dict[str, object]:
    """Usage as chat completions report it, for a caller whose provider told none."""
    prompt = usage.uncached_input + usage.cached_input + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_input,
            "cache_write_tokens": usage.cache_write,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def counted(request: JSON, output: str) -> Usage:
    """Usage of a call whose provider told none, by tokenizer; pictures count nothing."""
    return Usage(
        uncached_input=count_tokens(request_text(request)),
        output=count_tokens(output),
        calls=1,
        dollars=None,
        estimated=True,
    )


def request_text(request: JSON) -> str:
    """What of a request is text for the model, without data URLs."""
    told = {key: request.get(key) for key in READ_BY_MODEL if request.get(key)}
    return json.dumps(without_data(told), ensure_ascii=False, default=str)


def output_text(body: JSON) -> str:
    """What the model wrote: text, thoughts, and the arguments of its calls."""
    choices = body.get("choices")
    messages = [c.get("message") or {} for c in choices] if isinstance(choices, list) else []
    pieces = [
        str(message.get(key) or "")
        for message in messages
        for key in ("reasoning_content", "content", "refusal")
    ]
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    return "".join([*pieces, *(json.dumps(call.get("function")) for call in calls)])


def _first(raw: JSON, places: tuple[tuple[str, str], ...]) -> int:
    """The first of these counts that is there: some providers say it twice."""
    for where, key in places:
        found = _count(_mapping(raw, where) if where else raw, key)
        if found:
            return found
    return 0


def without_data(value: object) -> object:
    """The value with its data URLs emptied."""
    if isinstance(value, Mapping):
        return {key: without_data(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_data(inner) for inner in value]
    return "" if isinstance(value, str) and value.startswith("data:") else value


def _mapping(raw: JSON, key: str) -> JSON:
    value = raw.get(key)
    return value if isinstance(value, Mapping) else {}


def _count(raw: JSON, key: str) -> int:
    value = raw.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
