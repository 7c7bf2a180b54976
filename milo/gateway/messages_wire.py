"""Anthropic messages: requests as chat completions, completions as messages.

Tool results become messages of the role ``tool``; pictures in them follow in a user message,
because chat completions take none there. Marks for prompt caching are kept: a provider that knows
them uses them. Tools that the provider would run itself are left out, and that is noted.
"""

from __future__ import annotations

import json
from typing import Any

from milo.core.evidence import NOTHING_FETCHED
from milo.gateway.formats import JSON, BadRequest, Translated, first_choice, mapping, objects
from milo.gateway.messages_stream import MessagesEncoder, stop_reason, usage_of
from milo.gateway.outside import leniently
from milo.gateway.wire import error_message

SAME = ("model", "max_tokens", "temperature", "top_p", "top_k", "stream", "thinking", "metadata")
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
CHOICES = {"auto": "auto", "any": "required", "none": "none"}
CACHE = "cache_control"
LOCAL_ONLY = f"give its content as base64, {NOTHING_FETCHED}"


class MessagesWire:
    """Implements `formats.Wire`."""

    route = "/v1/messages"

    def request(self, asked: JSON) -> Translated:
        """As chat completions; raises `BadRequest` for what has no meaning there."""
        if not isinstance(asked.get("max_tokens"), int):
            raise BadRequest("'max_tokens' must be a positive whole number", "max_tokens")
        chat: dict[str, object] = {key: asked[key] for key in SAME if key in asked}
        chat["messages"] = [*_system(asked.get("system")), *_messages(asked.get("messages"))]
        if asked.get("stop_sequences"):
            chat["stop"] = asked["stop_sequences"]
        schema = mapping(mapping(asked.get("output_config")).get("format")).get("schema")
        if schema is not None:
            named = {"name": "answer", "schema": schema, "strict": True}
            chat["response_format"] = {"type": "json_schema", "json_schema": named}
        noted = _put_tools(chat, asked)
        known = {*SAME, "messages", "system", "stop_sequences", "tools", "tool_choice"}
        return Translated(chat=chat, noted=(*noted, *sorted(asked.keys() - known)))

    def answer(self, completion: JSON, asked: JSON) -> JSON:
        """A completion as a message."""
        choice = first_choice(completion)
        message = mapping(choice.get("message"))
        return {
            "id": f"msg_{completion.get('id') or 'milo'}",
            "type": "message",
            "role": "assistant",
            "model": completion.get("model"),
            "content": _content(message),
            "stop_reason": stop_reason(
                choice.get("finish_reason"), bool(message.get("tool_calls"))
            ),
            "stop_sequence": None,
            "usage": usage_of(completion),
        }

    def error(self, status: int, body: JSON) -> JSON:
        """Anthropic's error shape, with the type that goes with the status."""
        kind = KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": error_message(body)}}

    def encoder(self, asked: JSON, model: str) -> MessagesEncoder:
        """The encoder of one streamed message."""
        return MessagesEncoder(model, self.error)


def _system(system: object) -> list[dict[str, object]]:
    if not system:
        return []
    return [{"role": "system", "content": _texts(system, "system")}]


def _texts(content: object, where: str) -> object:
    """Text as one string where nothing marks its parts, else as parts."""
    if isinstance(content, str):
        return content
    blocks = objects(content)
    if any(block.get("type") != "text" for block in blocks):
        raise BadRequest(f"'{where}' takes text only", where)
    if any(CACHE in block for block in blocks):
        return [_text_part(block) for block in blocks]
    return "\n\n".join(str(block.get("text", "")) for block in blocks)


def _text_part(block: JSON) -> dict[str, object]:
    return {"type": "text", "text": block.get("text", ""), **_cache(block)}


def _cache(block: JSON) -> dict[str, object]:
    return {CACHE: {"type": "ephemeral"}} if block.get(CACHE) else {}


def _messages(messages: object) -> list[dict[str, object]]:
    if not isinstance(messages, list) or not messages:
        raise BadRequest("'messages' must be a non-empty list", "messages")
    return [turned for message in messages for turned in _message(message)]


def _message(message: object) -> list[dict[str, object]]:
    role = mapping(message).get("role")
    if role not in ("user", "assistant", "system"):
        raise BadRequest(f"a message has the role {role!r}, not user or assistant", "messages")
    content = mapping(message).get("content")
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    blocks = objects(content)
    if role == "system":
        return [{"role": role, "content": _texts(content, "messages")}]
    return _user(blocks) if role == "user" else [_assistant(blocks)]


def _user(blocks: list[JSON]) -> list[dict[str, object]]:
    turned: list[dict[str, object]] = []
    parts: list[dict[str, object]] = []
    for block in blocks:
        if block.get("type") == "tool_result":
            text, pictures = _tool_result(block)
            turned.append(
                {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": text}
            )
            parts += pictures
        else:
            parts.append(_part(block))
    if parts:
        turned.append({"role": "user", "content": _plain_if_text(parts)})
    return turned


def _plain_if_text(parts: list[dict[str, object]]) -> object:
    """One unmarked text as a string: every server takes that."""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        return parts[0]["text"]
    return parts


def _tool_result(block: JSON) -> tuple[object, list[dict[str, object]]]:
    content = block.get("content", "")
    if isinstance(content, str):
        text, pictures = content, []
    else:
        inner = objects(content)
        text = "\n".join(str(b.get("text", "")) for b in inner if b.get("type") == "text")
        pictures = [_part(b) for b in inner if b.get("type") in ("image", "document")]
    if block.get("is_error") is True:
        text = f"Error: {text}"
    return ([{"type": "text", "text": text, **_cache(block)}] if CACHE in block else text), pictures


def _part(block: JSON) -> dict[str, object]:
    kind = block.get("type")
    if kind == "text":
        return _text_part(block)
    if kind not in ("image", "document"):
        raise BadRequest(f"content of the type {kind!r} is not served", "messages")
    source = mapping(block.get("source"))
    if source.get("type") == "text":
        return _text_part({**block, "text": source.get("data", "")})
    if source.get("type") != "base64":
        raise BadRequest(f"an {kind} from {source.get('type')!r}: {LOCAL_ONLY}", "messages")
    data = f"data:{source.get('media_type')};base64,{source.get('data')}"
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": data}, **_cache(block)}
    name = str(block.get("title") or "document.pdf")
    return {"type": "file", "file": {"filename": name, "file_data": data}, **_cache(block)}


def _assistant(blocks: list[JSON]) -> dict[str, object]:
    texts = [block for block in blocks if block.get("type") == "text"]
    message: dict[str, object] = {"role": "assistant", "content": _texts(texts, "messages") or None}
    thinking = [b for b in blocks if b.get("type") in ("thinking", "redacted_thinking")]
    if thinking:
        message["thinking_blocks"] = thinking
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    if calls:
        message["tool_calls"] = calls
    return message


def _call(block: JSON) -> dict[str, object]:
    arguments = json.dumps(block.get("input") or {})
    function = {"name": block.get("name"), "arguments": arguments}
    return {"id": block.get("id"), "type": "function", "function": function}


def _put_tools(chat: dict[str, object], asked: JSON) -> tuple[str, ...]:
    tools = objects(asked.get("tools"))
    own = [tool for tool in tools if tool.get("type") in (None, "custom")]
    if own:
        chat["tools"] = [_tool(tool) for tool in own]
    choice = mapping(asked.get("tool_choice"))
    if choice.get("type") == "tool":
        chat["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
    elif choice.get("type") in CHOICES:
        chat["tool_choice"] = CHOICES[str(choice["type"])]
    if choice.get("disable_parallel_tool_use") is True:
        chat["parallel_tool_calls"] = False
    return tuple(f"tools.{tool.get('type')}" for tool in tools if tool not in own)


def _tool(tool: JSON) -> dict[str, object]:
    function: dict[str, object] = {
        "name": tool.get("name"),
        "parameters": tool.get("input_schema") or {"type": "object", "properties": {}},
    }
    if tool.get("description"):
        function["description"] = tool["description"]
    return {"type": "function", "function": function, **_cache(tool)}


def _content(message: JSON) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [dict(b) for b in objects(message.get("thinking_blocks"))]
    if not blocks and message.get("reasoning_content"):
        blocks = [{"type": "thinking", "thinking": message["reasoning_content"], "signature": ""}]
    if message.get("content"):
        blocks.append({"type": "text", "text": message["content"]})
    return blocks + [_tool_use(call) for call in objects(message.get("tool_calls"))]


def _tool_use(call: JSON) -> dict[str, Any]:
    function = mapping(call.get("function"))
    return {
        "type": "tool_use",
        "id": call.get("id"),
        "name": function.get("name"),
        "input": _arguments(str(function.get("arguments") or "{}")),
    }


def _arguments(text: str) -> JSON:
    """A tool's input is an object; what the model wrote instead is handed over as text."""
    try:
        value = leniently(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"arguments": text}
