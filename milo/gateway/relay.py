"""One answer on its way to the caller, piece by piece, with secrets held back.

A secret may be cut in two by the stream: an end of text that could be a secret's beginning waits
for what follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from milo.core.ports import Emit
from milo.gateway.wire import without_secrets

JSON = Mapping[str, object]


class Relay:
    """The chunks of one call. `started` says that the caller has seen something, so that the call
    can't be made again; `text` is all that came. One owner."""

    def __init__(self, emit: Emit, secrets: Sequence[str]) -> None:
        self._emit = emit
        self._secrets = tuple(secret for secret in secrets if secret)
        self._beginnings = _beginnings(self._secrets)
        self._longest = max((len(secret) - 1 for secret in self._secrets), default=0)
        self._tails: dict[tuple[object, ...], str] = {}
        self._pieces: list[str] = []
        self._closed = False
        self.started = False

    @property
    def text(self) -> str:
        """Everything that came, thoughts and arguments of calls included."""
        return "".join(self._pieces)

    async def emit(self, chunk: JSON) -> None:
        """Pass a chunk on; one that comes after `close` goes nowhere."""
        if self._closed:
            return
        cleaned = self._cleaned(chunk)
        self.started = self.started or bool(cleaned.get("choices"))
        await self._emit(cleaned)

    def close(self) -> None:
        """The call has ended; a library that goes on is not listened to."""
        self._closed = True

    def _cleaned(self, chunk: JSON) -> JSON:
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            return chunk
        for choice in choices:
            self._note(choice.get("delta") or {})
        if not self._secrets:
            return chunk
        return {**chunk, "choices": [self._clean_choice(choice) for choice in choices]}

    def _note(self, delta: Mapping[str, Any]) -> None:
        for key in ("content", "reasoning_content"):
            if isinstance(delta.get(key), str):
                self._pieces.append(delta[key])
        for call in delta.get("tool_calls") or ():
            function = call.get("function") or {}
            self._pieces += [str(function.get(k) or "") for k in ("name", "arguments")]

    def _clean_choice(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        """The choice without secrets; at its end everything that was held back comes out."""
        index, last = choice.get("index", 0), choice.get("finish_reason") is not None
        delta = dict(choice.get("delta") or {})
        for key in ("content", "reasoning_content"):
            text = self._clean((index, key), delta.get(key), last)
            if text or key in delta:
                delta[key] = text if delta.get(key) is not None or text else None
        calls = [self._clean_call(index, call, last) for call in delta.get("tool_calls") or ()]
        if last:
            calls += self._held_calls(index)
        if calls:
            delta["tool_calls"] = calls
        return {**choice, "delta": delta}

    def _clean_call(self, index: object, call: Mapping[str, Any], last: bool) -> dict[str, Any]:
        function = dict(call.get("function") or {})
        lane = (index, "call", call.get("index", 0))
        function["arguments"] = self._clean(lane, function.get("arguments"), last)
        return {**call, "function": function}

    def _held_calls(self, index: object) -> list[dict[str, Any]]:
        held = [lane for lane in self._tails if lane[:2] == (index, "call")]
        pairs = [(lane[2], self._tails.pop(lane)) for lane in held]
        return [{"index": nth, "function": {"arguments": text}} for nth, text in pairs if text]

    def _clean(self, lane: tuple[object, ...], piece: object, last: bool) -> str:
        text = self._tails.pop(lane, "") + (piece if isinstance(piece, str) else "")
        text = without_secrets(text, self._secrets)
        kept = 0 if last else self._overlap(text)
        if kept:
            self._tails[lane] = text[-kept:]
        return text[: len(text) - kept]

    def _overlap(self, text: str) -> int:
        """How much of the text's end could be a secret's beginning."""
        for size in range(min(len(text), self._longest), 0, -1):
            if text[-size:] in self._beginnings:
                return size
        return 0


@lru_cache(maxsize=8)
def _beginnings(secrets: tuple[str, ...]) -> frozenset[str]:
    """Every beginning of a secret, short of the whole. A process has one set of secrets."""
    return frozenset(secret[:size] for secret in secrets for size in range(1, len(secret)))
