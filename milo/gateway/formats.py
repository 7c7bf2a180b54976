"""What the gateway speaks: one `Wire` per request format, all meeting in chat completions.

Everything behind a wire (pins, caps, meter, record, replay, upstreams) knows chat completions
only, so that a harness's format changes nothing of what it costs or may do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

JSON = Mapping[str, object]


class BadRequest(ValueError):
    """A request that is the harness's mistake; answered with HTTP 400 and never forwarded."""

    def __init__(self, message: str, param: str | None = None) -> None:
        self.param = param
        super().__init__(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Translated:
    """A request as a chat-completions request; `noted` names what could not be carried over."""

    chat: dict[str, object]
    noted: tuple[str, ...] = ()


class StreamEncoder(Protocol):
    """One streamed answer: chat chunks in, bytes of the wire out. One owner."""

    def chunk(self, chunk: JSON) -> bytes:
        """The events of the next chunk ("" where it has none)."""
        ...

    def end(self, body: JSON) -> bytes:
        """The events that end a complete answer; `body` is the whole completion."""
        ...

    def error(self, status: int, body: JSON) -> bytes:
        """The events that end an answer that broke off; `body` is OpenAI's error shape."""
        ...


class Wire(Protocol):
    """One request format. Stateless."""

    @property
    def route(self) -> str:
        """The path that it is served under."""
        ...

    def request(self, asked: JSON) -> Translated:
        """As chat completions; raises `BadRequest`."""
        ...

    def answer(self, completion: JSON, asked: JSON) -> JSON:
        """A completion as this format has it."""
        ...

    def error(self, status: int, body: JSON) -> JSON:
        """An error (in OpenAI's shape) as this format has it."""
        ...

    def encoder(self, asked: JSON, model: str) -> StreamEncoder:
        """The encoder of one streamed answer; `model` is the name that callers see."""
        ...


def event(data: JSON, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + json.dumps(data).encode() + b"\n\n"


def mapping(value: object) -> JSON:
    """The value, or nothing where it is no object."""
    return value if isinstance(value, Mapping) else {}


def objects(value: object) -> list[JSON]:
    """Those items of a list that are objects."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def first_choice(body: JSON) -> JSON:
    """The only choice that is ever asked for; nothing where there is none."""
    choices = objects(body.get("choices"))
    return choices[0] if choices else {}
