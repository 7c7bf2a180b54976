"""OpenAI responses, streamed: items and parts open, grow and close; every event is numbered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from milo.gateway.chunks import chunks_of
from milo.gateway.formats import JSON, event, mapping, objects
from milo.gateway.responses_shape import (
    call_item,
    custom_text,
    customs,
    ended,
    message_item,
    reasoning_item,
    shell,
    text_part,
)
from milo.gateway.wire import error_code, error_message


@dataclass(kw_only=True, slots=True)
class _Item:
    """One output item that is being written."""

    kind: str
    place: int
    ident: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class ResponsesEncoder:
    """Implements `formats.StreamEncoder`. Calls stay open to the end: their pieces may mix."""

    def __init__(self, asked: JSON, model: str) -> None:
        self._asked = asked
        self._model = model
        self._custom = customs(asked)
        self._number = 0
        self._shell: dict[str, Any] = {}
        self._ident = ""
        self._open: dict[object, _Item] = {}
        self._done: dict[int, dict[str, Any]] = {}
        self._places = 0

    def chunk(self, chunk: JSON) -> bytes:
        """The events of one chunk."""
        pieces = [] if self._shell else self._start(chunk)
        for choice in objects(chunk.get("choices")):
            delta = mapping(choice.get("delta"))
            if delta.get("reasoning_content"):
                pieces += self._grow("reasoning", str(delta["reasoning_content"]))
            if delta.get("content"):
                pieces += self._grow("message", str(delta["content"]))
            for call in objects(delta.get("tool_calls")):
                pieces += self._call(call)
        return b"".join(pieces)

    def end(self, body: JSON) -> bytes:
        """Close every item, and the response."""
        pieces = [] if self._shell else [self.chunk(chunk) for chunk in chunks_of(body)]
        pieces = pieces if self._shell else self._start(body)
        for key in tuple(self._open):
            pieces += self._close(key)
        whole = ended({**self._shell, "output": self._output()}, body)
        pieces.append(self._event(f"response.{whole['status']}", response=whole))
        return b"".join(pieces)

    def error(self, status: int, body: JSON) -> bytes:
        """The response as failed, then the error event, flat and nested: clients differ."""
        message, code = error_message(body), error_code(body)
        failed = {"code": code or "server_error", "message": message}
        whole = {**self._shell, "status": "failed", "error": failed, "output": self._output()}
        pieces = [self._event("response.failed", response=whole)]
        told = {"type": "server_error", **failed, "param": None}
        pieces.append(self._event("error", code=code, message=message, param=None, error=told))
        return b"".join(pieces)

    def _start(self, head: JSON) -> list[bytes]:
        self._ident = str(head.get("id") or "milo")
        self._shell = shell(self._asked, self._model, self._ident, head.get("created"))
        return [
            self._event("response.created", response=self._shell),
            self._event("response.in_progress", response=self._shell),
        ]

    def _grow(self, kind: str, text: str) -> list[bytes]:
        pieces: list[bytes] = []
        if kind not in self._open:
            for other in [key for key in self._open if isinstance(key, str)]:
                pieces += self._close(other)
            pieces += self._begin(kind)
        item = self._open[kind]
        item.pieces.append(text)
        if kind == "reasoning":
            return [*pieces, self._part_event("response.reasoning_text.delta", item, delta=text)]
        return [
            *pieces,
            self._part_event("response.output_text.delta", item, delta=text, logprobs=[]),
        ]

    def _begin(self, kind: str) -> list[bytes]:
        nth = f"{self._ident}_{self._places}" if self._places else self._ident
        item = self._new(kind, _Item(kind=kind, place=0, ident=nth))
        if kind == "reasoning":
            started = reasoning_item(nth, "", "in_progress")
            return [self._added(item, started)]
        return [
            self._added(item, message_item(nth, None, "in_progress")),
            self._part_event("response.content_part.added", item, part=text_part("")),
        ]

    def _new(self, key: object, item: _Item) -> _Item:
        item.place = self._places
        self._places += 1
        self._open[key] = item
        return item

    def _call(self, call: JSON) -> list[bytes]:
        key, function = ("call", call.get("index", 0)), mapping(call.get("function"))
        pieces: list[bytes] = []
        if key not in self._open:
            for other in [k for k in self._open if isinstance(k, str)]:
                pieces += self._close(other)
            ident = str(call.get("id") or f"call_{self._ident}_{self._places}")
            new = _Item(kind="call", place=0, ident=ident, name=str(function.get("name")))
            item = self._new(key, new)
            pieces.append(self._added(item, self._call_of(item, "in_progress")))
        item = self._open[key]
        if arguments := function.get("arguments"):
            item.pieces.append(str(arguments))
            if item.name not in self._custom:
                kind = "response.function_call_arguments.delta"
                pieces.append(self._item_event(kind, item, delta=arguments))
        return pieces

    def _close(self, key: object) -> list[bytes]:
        item = self._open.pop(key)
        if item.kind == "reasoning":
            whole = reasoning_item(item.ident, item.text)
            pieces = [self._part_event("response.reasoning_text.done", item, text=item.text)]
        elif item.kind == "message":
            whole = message_item(item.ident, item.text)
            pieces = [
                self._part_event("response.output_text.done", item, text=item.text, logprobs=[]),
                self._part_event("response.content_part.done", item, part=text_part(item.text)),
            ]
        else:
            whole = self._call_of(item, "completed")
            pieces = [self._call_done(item)]
        self._done[item.place] = whole
        done = self._event("response.output_item.done", output_index=item.place, item=whole)
        return [*pieces, done]

    def _call_of(self, item: _Item, status: str) -> dict[str, Any]:
        custom = item.name in self._custom
        return call_item(item.ident, item.name, item.text, custom=custom, status=status)

    def _call_done(self, item: _Item) -> bytes:
        if item.name in self._custom:
            text = custom_text(item.text)
            return self._item_event("response.custom_tool_call_input.done", item, input=text)
        return self._item_event(
            "response.function_call_arguments.done", item, arguments=item.text, name=item.name
        )

    def _added(self, item: _Item, started: JSON) -> bytes:
        return self._event("response.output_item.added", output_index=item.place, item=started)

    def _part_event(self, kind: str, item: _Item, **fields: object) -> bytes:
        return self._item_event(kind, item, content_index=0, **fields)

    def _item_event(self, kind: str, item: _Item, **fields: object) -> bytes:
        ident = self._id_of(item)
        return self._event(kind, item_id=ident, output_index=item.place, **fields)

    def _id_of(self, item: _Item) -> str:
        if item.kind == "call":
            return str(self._call_of(item, "in_progress")["id"])
        return f"{'rs' if item.kind == 'reasoning' else 'msg'}_{item.ident}"

    def _output(self) -> list[dict[str, Any]]:
        return [self._done[place] for place in sorted(self._done)]

    def _event(self, kind: str, **fields: object) -> bytes:
        self._number += 1
        return event({"type": kind, "sequence_number": self._number - 1, **fields}, kind)
