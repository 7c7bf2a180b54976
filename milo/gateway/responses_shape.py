"""The shapes of OpenAI responses: the response object, its output items, its usage."""

from __future__ import annotations

import json
from typing import Any

from milo.gateway.formats import JSON, first_choice, mapping, objects
from milo.gateway.usage import parse_usage

ECHOED: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
}
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def custom_arguments(text: object) -> str:
    """A custom tool's free text as a function's arguments."""
    return json.dumps({"input": text if isinstance(text, str) else ""})


def custom_text(arguments: str) -> str:
    """The free text that the arguments of a custom tool hold; as they are where they don't."""
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    inner = value.get("input") if isinstance(value, dict) else None
    return inner if isinstance(inner, str) else arguments


def customs(asked: JSON) -> frozenset[str]:
    """The names of the request's custom tools."""
    tools = objects(asked.get("tools"))
    return frozenset(str(tool.get("name")) for tool in tools if tool.get("type") == "custom")


def shell(asked: JSON, model: object, ident: str, created: object) -> dict[str, Any]:
    """A response that has only begun: what the request asked, and no output yet."""
    echoed = {
        key: default if asked.get(key) is None else asked[key] for key, default in ECHOED.items()
    }
    return {
        "id": f"resp_{ident}",
        "object": "response",
        "created_at": created or 0,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "store": False,
        "usage": None,
        **echoed,
    }


def response_of(completion: JSON, asked: JSON) -> dict[str, Any]:
    """A finished completion as a response."""
    ident = str(completion.get("id") or "milo")
    whole = shell(asked, completion.get("model"), ident, completion.get("created"))
    whole["output"] = output_items(mapping(first_choice(completion).get("message")), ident, asked)
    return ended(whole, completion)


def ended(whole: dict[str, Any], completion: JSON) -> dict[str, Any]:
    """The response with its status and usage."""
    reason = INCOMPLETE.get(str(first_choice(completion).get("finish_reason")))
    details = {"reason": reason} if reason else None
    status = "incomplete" if reason else "completed"
    return {**whole, "status": status, "incomplete_details": details, "usage": usage_of(completion)}


def usage_of(completion: JSON) -> dict[str, Any]:
    """Usage as responses report it: cached tokens in the input, reasoning in the output."""
    usage = parse_usage(completion, {})
    prompt = usage.uncached_input + usage.cached_input + usage.cache_write
    return {
        "input_tokens": prompt,
        "input_tokens_details": {
            "cached_tokens": usage.cached_input,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": prompt + usage.output,
    }


def output_items(message: JSON, ident: str, asked: JSON) -> list[dict[str, Any]]:
    """Thoughts, text and calls, as items in that order."""
    items: list[dict[str, Any]] = []
    if message.get("reasoning_content"):
        items.append(reasoning_item(ident, str(message["reasoning_content"])))
    if message.get("content"):
        items.append(message_item(ident, str(message["content"])))
    for nth, call in enumerate(objects(message.get("tool_calls"))):
        function = mapping(call.get("function"))
        name, arguments = str(function.get("name")), str(function.get("arguments") or "")
        call_id = str(call.get("id") or f"call_{ident}_{nth}")
        items.append(call_item(call_id, name, arguments, custom=name in customs(asked)))
    return items


def reasoning_item(ident: str, text: str, status: str = "completed") -> dict[str, Any]:
    """A reasoning item; the model's own words, which OpenAI's models keep to themselves."""
    content = [{"type": "reasoning_text", "text": text}] if text else []
    return {
        "id": f"rs_{ident}",
        "type": "reasoning",
        "summary": [],
        "content": content,
        "status": status,
    }


def message_item(ident: str, text: str | None, status: str = "completed") -> dict[str, Any]:
    """A message item; None for one that has only begun."""
    content = [] if text is None else [text_part(text)]
    return {
        "id": f"msg_{ident}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def text_part(text: str) -> dict[str, Any]:
    """A text part of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def call_item(
    call_id: str, name: str, arguments: str, *, custom: bool, status: str = "completed"
) -> dict[str, Any]:
    """A call of a function, or of a custom tool."""
    if custom:
        item = {"id": f"ctc_{call_id}", "type": "custom_tool_call", "input": custom_text(arguments)}
    else:
        item = {"id": f"fc_{call_id}", "type": "function_call", "arguments": arguments}
    return {**item, "call_id": call_id, "name": name, "status": status}
