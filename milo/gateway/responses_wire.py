"""OpenAI responses: requests as chat completions, completions as responses.

Nothing is stored between calls, so a request carries its whole conversation, as clients do with
``store=false``. Calls that follow each other are one assistant message with parallel calls.
"""

from __future__ import annotations

from typing import Any

from milo.gateway.formats import JSON, BadRequest, Translated, mapping, objects
from milo.gateway.responses_shape import custom_arguments, response_of
from milo.gateway.responses_stream import ResponsesEncoder

SAME = ("model", "temperature", "top_p", "top_logprobs", "parallel_tool_calls", "stream")
KNOWN = frozenset(
    {*SAME, "input", "instructions", "tools", "tool_choice", "text", "reasoning"}
    | {"max_output_tokens", "store", "background", "previous_response_id", "conversation"}
    | {"prompt", "stream_options"}
)
STORED = ("previous_response_id", "conversation", "prompt")
TEXTS = ("input_text", "output_text", "text", "refusal", "summary_text")
ROLES = {"developer": "system"}


class ResponsesWire:
    """Implements `formats.Wire`."""

    route = "/v1/responses"

    def request(self, asked: JSON) -> Translated:
        """As chat completions; raises `BadRequest` for what needs a store."""
        _check(asked)
        chat: dict[str, object] = {key: asked[key] for key in SAME if key in asked}
        head = asked.get("instructions")
        start = [{"role": "system", "content": head}] if isinstance(head, str) and head else []
        messages, left_out = _messages(asked.get("input"))
        chat["messages"] = [*start, *messages]
        if asked.get("max_output_tokens") is not None:
            chat["max_tokens"] = asked["max_output_tokens"]
        if effort := mapping(asked.get("reasoning")).get("effort"):
            chat["reasoning_effort"] = effort
        _put_format(chat, mapping(mapping(asked.get("text")).get("format")))
        noted = _put_tools(chat, asked)
        return Translated(chat=chat, noted=(*noted, *left_out, *sorted(asked.keys() - KNOWN)))

    def answer(self, completion: JSON, asked: JSON) -> JSON:
        """A completion as a response."""
        return response_of(completion, asked)

    def error(self, status: int, body: JSON) -> JSON:
        """OpenAI's own shape."""
        return body

    def encoder(self, asked: JSON, model: str) -> ResponsesEncoder:
        """The encoder of one streamed response."""
        return ResponsesEncoder(asked, model)


def _check(asked: JSON) -> None:
    for key in STORED:
        if asked.get(key) is not None:
            raise BadRequest(f"'{key}' is not served: nothing is stored, send the whole input", key)
    if asked.get("background") is True:
        raise BadRequest("'background' is not served", "background")
    limit = asked.get("max_output_tokens")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise BadRequest("'max_output_tokens' must be a positive whole number", "max_output_tokens")


def _messages(given: object) -> tuple[list[dict[str, Any]], list[str]]:
    """The conversation, and what kinds of items could not be carried over."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}], []
    if not isinstance(given, list) or not given:
        raise BadRequest("'input' must be a text or a non-empty list", "input")
    messages: list[dict[str, Any]] = []
    left_out: set[str] = set()
    for item in objects(given):
        kind = str(item.get("type") or "message")
        if kind == "message":
            _add_message(messages, item)
        elif kind in ("function_call", "custom_tool_call"):
            _add_call(messages, item)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            messages += _output(item)
        else:
            left_out.add(f"input.{kind}")
    return messages, sorted(left_out)


def _add_message(messages: list[dict[str, Any]], item: JSON) -> None:
    role = str(item.get("role"))
    content = item.get("content")
    if not isinstance(content, str):
        parts = [_part(part) for part in objects(content)]
        texts = all(part["type"] == "text" for part in parts)
        content = "".join(part["text"] for part in parts) if texts else parts
    messages.append({"role": ROLES.get(role, role), "content": content})


def _part(part: JSON) -> dict[str, Any]:
    kind = part.get("type")
    if kind in TEXTS:
        return {"type": "text", "text": str(part.get("text") or part.get("refusal") or "")}
    if kind == "input_image" and part.get("image_url"):
        image = {"url": part["image_url"]}
        if part.get("detail"):
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if kind == "input_file" and part.get("file_data"):
        file = {"filename": part.get("filename") or "file", "file_data": part["file_data"]}
        return {"type": "file", "file": file}
    raise BadRequest(f"content of the type {kind!r} is served only with its data in it", "input")


def _add_call(messages: list[dict[str, Any]], item: JSON) -> None:
    custom = item.get("type") == "custom_tool_call"
    arguments = custom_arguments(item.get("input")) if custom else item.get("arguments")
    function = {"name": item.get("name"), "arguments": arguments or "{}"}
    call = {"id": item.get("call_id"), "type": "function", "function": function}
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    messages[-1].setdefault("tool_calls", []).append(call)


def _output(item: JSON) -> list[dict[str, Any]]:
    """A tool's message; pictures in it follow as a user's."""
    output = item.get("output", "")
    parts = [] if isinstance(output, str) else [_part(part) for part in objects(output)]
    text = output if isinstance(output, str) else "\n".join(p.get("text", "") for p in parts)
    turned = [{"role": "tool", "tool_call_id": item.get("call_id"), "content": text.strip("\n")}]
    pictures = [part for part in parts if part["type"] != "text"]
    return [*turned, {"role": "user", "content": pictures}] if pictures else turned


def _put_format(chat: dict[str, object], wanted: JSON) -> None:
    if wanted.get("type") == "json_schema":
        named = {key: wanted[key] for key in ("name", "schema", "strict") if key in wanted}
        chat["response_format"] = {"type": "json_schema", "json_schema": named}
    elif wanted.get("type") == "json_object":
        chat["response_format"] = {"type": "json_object"}


def _put_tools(chat: dict[str, object], asked: JSON) -> tuple[str, ...]:
    tools = objects(asked.get("tools"))
    served = [tool for tool in tools if tool.get("type") in ("function", "custom")]
    if served:
        chat["tools"] = [_tool(tool) for tool in served]
    choice = asked.get("tool_choice")
    if isinstance(choice, str):
        chat["tool_choice"] = choice
    elif mapping(choice).get("type") in ("function", "custom"):
        chosen = {"name": mapping(choice).get("name")}
        chat["tool_choice"] = {"type": "function", "function": chosen}
    if not served:
        chat.pop("tool_choice", None)
        chat.pop("parallel_tool_calls", None)
    return tuple(f"tools.{tool.get('type')}" for tool in tools if tool not in served)


def _tool(tool: JSON) -> dict[str, object]:
    """A function; a custom tool is one whose only argument is its free text."""
    function = {key: tool[key] for key in ("name", "description") if tool.get(key)}
    if tool.get("type") == "custom":
        text = {"type": "string", "description": "The tool's input, as free text."}
        function["parameters"] = {
            "type": "object",
            "properties": {"input": text},
            "required": ["input"],
        }
        return {"type": "function", "function": function}
    function["parameters"] = tool.get("parameters") or {"type": "object", "properties": {}}
    if isinstance(tool.get("strict"), bool):
        function["strict"] = tool["strict"]
    return {"type": "function", "function": function}
