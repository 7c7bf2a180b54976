"""A model exchange as a dialogue: who said what, tool calls and their results among it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from milo.core.evidence import Exchange


class Said(NamedTuple):
    """One turn: a role (or ``reply``, ``ROLE calls NAME``), and its words."""

    who: str
    words: str


def dialogue_of(exchange: Exchange) -> tuple[Said, ...]:
    """The request's messages in order, then the reply. What has no form that is known here is
    shown as JSON rather than left out."""
    asked = exchange.request.get("messages")
    messages = asked if isinstance(asked, list | tuple) else ()
    turns = [turn for message in messages for turn in _turns(message)]
    return (*turns, *_reply(exchange.response))


def _reply(response: Mapping[str, object]) -> Iterator[Said]:
    choices = response.get("choices")
    if not isinstance(choices, list | tuple) or not choices:
        yield Said("reply", _words(response))
        return
    for choice in choices:
        message = choice.get("message") if isinstance(choice, Mapping) else None
        if isinstance(message, Mapping):
            yield from _turns({**message, "role": "reply"})
        else:
            yield Said("reply", _words(choice))


def _turns(message: object) -> Iterator[Said]:
    if not isinstance(message, Mapping):
        yield Said("message", _words(message))
        return
    who = str(message.get("role", "message"))
    thoughts = message.get("reasoning_content")
    if isinstance(thoughts, str) and thoughts:
        yield Said(f"{who} thinks", thoughts)
    calls = message.get("tool_calls")
    known = calls if isinstance(calls, list | tuple) else ()
    if message.get("content") or not known:
        yield Said(who, _words(message.get("content")))
    for call in known:
        yield _call(who, call)


def _call(who: str, call: object) -> Said:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return Said(f"{who} calls", _words(call))
    return Said(f"{who} calls {function.get('name', '')}", _arguments(function.get("arguments")))


def _arguments(given: object) -> str:
    """Arguments one a line, with their line breaks as such: most are commands and files."""
    try:
        data = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return str(given)
    if not isinstance(data, Mapping):
        return _words(data)
    return "\n".join(f"{name}: {_words(value)}" for name, value in data.items())


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, Sequence) and all(_text(part) is not None for part in content):
        return "\n".join(_text(part) or "" for part in content)
    return json.dumps(content, indent=1, default=str)


def _text(part: object) -> str | None:
    """The text of a text part; None for anything else, such as a picture."""
    text = part.get("text") if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else None
