"""Scripted answers as server-sent events, word by word, as OpenAI-compatible servers send them."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from aiohttp import web

JSON = Mapping[str, Any]


async def send_stream(
    request: web.Request,
    body: JSON,
    *,
    seconds_per_piece: float,
    drop_after: int | None,
    sleep: Callable[[float], Awaitable[None]],
) -> web.StreamResponse:
    """Send a completion in pieces, one per `seconds_per_piece`.

    After `drop_after` pieces the connection is cut (None: never). Usage comes last, in a chunk
    without choices, if the completion has it.
    """
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for sent, chunk in enumerate(pieces_of(body)):
        if sent == drop_after:
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError("scripted drop")
        if seconds_per_piece:
            await sleep(seconds_per_piece)
        await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


def pieces_of(body: JSON) -> Iterator[dict[str, Any]]:
    """The chunks of a completion: words, then the halves of each call's arguments, then ends."""
    head = {key: body.get(key) for key in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    for choice in body["choices"]:
        index, message = choice["index"], choice["message"]
        for delta in _deltas(message):
            yield {**head, "choices": [{"index": index, "delta": delta, "finish_reason": None}]}
        end = {"index": index, "delta": {}, "finish_reason": choice["finish_reason"]}
        yield {**head, "choices": [end]}
    if body.get("usage"):
        yield {**head, "choices": [], "usage": body["usage"]}


def _deltas(message: JSON) -> Iterator[dict[str, Any]]:
    for key in ("reasoning_content", "content"):
        for word in re.findall(r"\S+\s*|\s+", message.get(key) or ""):
            yield {"role": "assistant", key: word}
    for index, call in enumerate(message.get("tool_calls") or ()):
        function, text = call["function"], call["function"]["arguments"]
        middle = len(text) // 2
        begun = {"name": function["name"], "arguments": text[:middle]}
        yield {"tool_calls": [{**call, "index": index, "function": begun}]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": text[middle:]}}]}
