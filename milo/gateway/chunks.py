"""A chat completion in pieces: put together from a stream's chunks, and taken apart into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

JSON = Mapping[str, object]
HEAD = ("id", "created", "model", "system_fingerprint")


class Assembly:
    """One completion as its chunks come in. One owner.

    Tool calls are put together by their index; a provider that gives none (one call per chunk)
    is understood by their ids.
    """

    def __init__(self) -> None:
        self._head: dict[str, object] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._usage: object = None

    @property
    def empty(self) -> bool:
        """Whether no choice has come yet."""
        return not self._choices

    @property
    def finished(self) -> bool:
        """Whether every choice so far has its reason for ending."""
        return bool(self._choices) and all(
            choice["finish_reason"] is not None for choice in self._choices.values()
        )

    def add(self, chunk: JSON) -> None:
        """The next chunk; usage given more than once counts as the last says."""
        for key in HEAD:
            if key not in self._head and chunk.get(key) is not None:
                self._head[key] = chunk[key]
        if isinstance(chunk.get("usage"), Mapping):
            self._usage = chunk["usage"]
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            self._add_choice(choice)

    def body(self) -> dict[str, object]:
        """The completion in the shape of one that was not streamed; no usage where none came."""
        whole: dict[str, object] = {**self._head, "object": "chat.completion"}
        whole["choices"] = [_finished(self._choices[index]) for index in sorted(self._choices)]
        if self._usage is not None:
            whole["usage"] = self._usage
        return whole

    def _add_choice(self, piece: Mapping[str, Any]) -> None:
        index = piece.get("index") or 0
        choice = self._choices.setdefault(
            index, {"index": index, "message": {"role": "assistant"}, "finish_reason": None}
        )
        if piece.get("finish_reason") is not None:
            choice["finish_reason"] = piece["finish_reason"]
        if isinstance(piece.get("logprobs"), Mapping):
            known = choice.setdefault("logprobs", {})
            for key, value in piece["logprobs"].items():
                known[key] = [*(known.get(key) or []), *value] if value else known.get(key)
        for key, value in (piece.get("delta") or {}).items():
            _merge(choice["message"], key, value)


def _merge(message: dict[str, Any], key: str, value: Any) -> None:
    if key == "tool_calls":
        for call in value or ():
            _merge_call(message.setdefault("tool_calls", []), call)
    elif isinstance(value, str) and key != "role":
        message.setdefault(key, []).append(value)
    elif isinstance(value, list):
        message[key] = [*message.get(key, []), *value]
    elif value is not None:
        message[key] = value


def _merge_call(calls: list[dict[str, Any]], piece: Mapping[str, Any]) -> None:
    call = _call_of(calls, piece)
    for key in ("id", "type"):
        if piece.get(key):
            call.setdefault(key, piece[key])
    function = piece.get("function") or {}
    if function.get("name"):
        call["function"].setdefault("name", function["name"])
    if function.get("arguments"):
        call["function"]["arguments"].append(function["arguments"])


def _call_of(calls: list[dict[str, Any]], piece: Mapping[str, Any]) -> dict[str, Any]:
    index = piece.get("index")
    for call in calls:
        if call["index"] == index and index is not None:
            return call
    if index is None and not piece.get("id") and calls:
        return calls[-1]
    known = {call["index"] for call in calls}
    calls.append({"index": max(known, default=-1) + 1 if index is None else index})
    calls[-1]["function"] = {"arguments": []}
    return calls[-1]


def _finished(choice: Mapping[str, Any]) -> dict[str, object]:
    message: dict[str, Any] = {
        key: "".join(value) if _is_text(value) else value
        for key, value in choice["message"].items()
    }
    message.setdefault("content", None)
    if "tool_calls" in message:
        message["tool_calls"] = [_finished_call(call) for call in message["tool_calls"]]
    return {**choice, "message": message}


def _is_text(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)


def _finished_call(call: Mapping[str, Any]) -> dict[str, object]:
    function = {**call["function"], "arguments": "".join(call["function"]["arguments"])}
    rest = {key: value for key, value in call.items() if key != "index"}
    return {"type": "function", **rest, "function": function}


def chunks_of(body: JSON) -> Iterator[dict[str, object]]:
    """A finished completion as a few chunks: each choice's message, then its end."""
    head = {key: body.get(key) for key in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        index = choice.get("index", 0)
        delta = _delta(choice.get("message") or {})
        yield {**head, "choices": [_choice(index, delta, None)]}
        yield {**head, "choices": [_choice(index, {}, choice.get("finish_reason"))]}


def usage_chunk(body: JSON) -> dict[str, object]:
    """The last chunk of a stream whose caller asked for usage."""
    head = {key: body.get(key) for key in ("id", "created", "model")}
    return {**head, "object": "chat.completion.chunk", "choices": [], "usage": body.get("usage")}


def _delta(message: JSON) -> dict[str, object]:
    delta = {key: value for key, value in message.items() if value is not None}
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(calls)]
    return delta


def _choice(index: int, delta: JSON, reason: object) -> dict[str, object]:
    return {"index": index, "delta": delta, "finish_reason": reason}
