"""Anthropic messages, streamed: a message's start, its content blocks one by one, its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from milo.gateway.chunks import chunks_of
from milo.gateway.formats import JSON, event, first_choice, mapping, objects
from milo.gateway.usage import parse_usage

REASONS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
STARTS: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}


def stop_reason(finish_reason: object, calls_tools: bool) -> str:
    """Anthropic's word for why an answer ended; some providers say ``stop`` for tool calls."""
    if calls_tools and finish_reason != "length":
        return "tool_use"
    return REASONS.get(str(finish_reason), "end_turn")


def usage_of(completion: JSON) -> dict[str, int]:
    """Usage as Anthropic reports it: cached tokens beside the input, not in it."""
    usage = parse_usage(completion, {})
    return {
        "input_tokens": usage.uncached_input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached_input,
        "output_tokens": usage.output,
    }


class MessagesEncoder:
    """Implements `formats.StreamEncoder`.

    Text and thinking are one block as long as they go on; each tool call is a block, in which a
    late piece still lands. The figures of input are known at the end only and stand there.
    """

    def __init__(self, model: str, error: Callable[[int, JSON], JSON]) -> None:
        self._model = model
        self._error = error
        self._began = False
        self._blocks = 0
        self._open = ""
        self._calls: dict[object, int] = {}

    def chunk(self, chunk: JSON) -> bytes:
        """The events of one chunk."""
        pieces = [] if self._began else [self._start(chunk)]
        for choice in objects(chunk.get("choices")):
            pieces += self._delta(mapping(choice.get("delta")))
        return b"".join(pieces)

    def end(self, body: JSON) -> bytes:
        """Close what is open, say why it ended and what it cost."""
        pieces = [] if self._began else [self.chunk(chunk) for chunk in chunks_of(body)]
        reason = stop_reason(first_choice(body).get("finish_reason"), bool(self._calls))
        pieces += self._close()
        delta = {"stop_reason": reason, "stop_sequence": None}
        pieces.append(_event("message_delta", delta=delta, usage=usage_of(body)))
        return b"".join((*pieces, _event("message_stop")))

    def error(self, status: int, body: JSON) -> bytes:
        """Anthropic's error event."""
        return event(self._error(status, body), "error")

    def _start(self, chunk: JSON) -> bytes:
        self._began = True
        message: dict[str, Any] = {
            "id": f"msg_{chunk.get('id') or 'milo'}",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_of({"usage": {}}),
        }
        return _event("message_start", message=message)

    def _delta(self, delta: JSON) -> list[bytes]:
        pieces: list[bytes] = []
        signed = objects(delta.get("thinking_blocks"))
        thought = delta.get("reasoning_content") or "".join(
            str(block.get("thinking") or "") for block in signed
        )
        if thought:
            pieces += self._piece("thinking", {"type": "thinking_delta", "thinking": thought})
        for block in signed:
            if block.get("signature"):
                part = {"type": "signature_delta", "signature": block["signature"]}
                pieces += self._piece("thinking", part)
        if delta.get("content"):
            pieces += self._piece("text", {"type": "text_delta", "text": delta["content"]})
        for call in objects(delta.get("tool_calls")):
            pieces += self._call(call)
        return pieces

    def _piece(self, kind: str, delta: JSON) -> list[bytes]:
        pieces = []
        if self._open != kind:
            pieces = [*self._close(), self._begin(STARTS[kind])]
            self._open = kind
        return [*pieces, _event("content_block_delta", index=self._blocks - 1, delta=delta)]

    def _call(self, call: JSON) -> list[bytes]:
        key, function = call.get("index", call.get("id")), mapping(call.get("function"))
        pieces: list[bytes] = []
        if key not in self._calls:
            block = {"type": "tool_use", "id": call.get("id"), "name": function.get("name")}
            pieces = [*self._close(), self._begin({**block, "input": {}})]
            self._calls[key], self._open = self._blocks - 1, "tool"
        if function.get("arguments"):
            delta = {"type": "input_json_delta", "partial_json": function["arguments"]}
            pieces.append(_event("content_block_delta", index=self._calls[key], delta=delta))
        return pieces

    def _begin(self, block: JSON) -> bytes:
        self._blocks += 1
        return _event("content_block_start", index=self._blocks - 1, content_block=block)

    def _close(self) -> list[bytes]:
        if not self._open:
            return []
        self._open = ""
        return [_event("content_block_stop", index=self._blocks - 1)]


def _event(kind: str, **fields: object) -> bytes:
    return event({"type": kind, **fields}, kind)
