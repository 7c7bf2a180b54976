"""Talking with a model that has tools: by its own tool calls where it makes them, else in text.

Tools are always offered the way that chat completions declare them. A model without tool calls
(or a provider that leaves the declaration out, or refuses it) is told in the first message how to
call one in text: with one JSON object. Which of the two a model does is seen in each reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from milo.core.attempt import Usage
from milo.core.errors import MiloError, ModelRefused

Message = Mapping[str, object]
Converse = Callable[
    [Sequence[Message], Sequence[Mapping[str, object]]], Awaitable[tuple[Message, Usage]]
]
"""Takes messages and declared tools; gives the model's message and what it cost."""

TOOL = "tool"
"""The field of a call in text that names the tool."""


class BadCall(MiloError):
    """A tool call that can't be carried out as it is; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """One tool: its name, what it does in a few words, and its parameters as a JSON schema's
    properties, of which `optional` may be left out."""

    name: str
    about: str
    parameters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    optional: tuple[str, ...] = ()

    def declared(self) -> dict[str, object]:
        """As chat completions declare it."""
        schema = {
            "type": "object",
            "properties": {name: dict(about) for name, about in self.parameters.items()},
            "required": [name for name in self.parameters if name not in self.optional],
        }
        about = {"name": self.name, "description": self.about, "parameters": schema}
        return {"type": "function", "function": about}

    def line(self) -> str:
        """As a model without tool calls is told of it."""
        shown = {
            TOOL: self.name,
            **{name: "..." for name in self.parameters if name not in self.optional},
        }
        more = f", with optional {', '.join(self.optional)}" if self.optional else ""
        return f"{json.dumps(shown)}  {self.about}{more}"


class Call(NamedTuple):
    """A call that a model made: the tool, its arguments, and the call's id ("" in text).

    `problem` says why the arguments can't be read, "" where they can.
    """

    tool: str
    arguments: Mapping[str, object]
    id: str = ""
    problem: str = ""

    def text(self, key: str) -> str:
        """An argument that must be a text; raises `BadCall`."""
        value = self.arguments.get(key)
        if not isinstance(value, str):
            raise BadCall(f'the tool {self.tool} needs "{key}" as a string')
        return value


class Said(NamedTuple):
    """One reply: its tool calls in order (none where there were none), its text, its cost."""

    calls: tuple[Call, ...]
    text: str
    usage: Usage


class Dialogue:
    """A conversation that grows. Owned by one caller.

    `messages` starts with the system's and the user's first words. `reads_text` says whether a
    call in text is looked for where a reply makes no call of its own.
    """

    def __init__(
        self,
        converse: Converse,
        tools: Iterable[Tool],
        messages: Sequence[Message],
        *,
        reads_text: bool = True,
    ) -> None:
        self._converse = converse
        self._declared = [tool.declared() for tool in tools]
        self._reads_text = reads_text
        self.messages: list[Message] = list(messages)

    async def ask(self) -> Said:
        """The model's next reply, which becomes part of the conversation.

        Raises what the model's caller raises.
        """
        try:
            message, usage = await self._converse(self.messages, self._declared)
        except ModelRefused:
            if not self._declared or any(m["role"] == TOOL for m in self.messages):
                raise
            self._declared = []  # the provider may refuse the declaration itself
            message, usage = await self._converse(self.messages, self._declared)
        text = str(message.get("content") or "")
        calls = calls_of(message)
        if calls:
            kept = {"role": "assistant", "content": text or None}
            self.messages.append({**kept, "tool_calls": message["tool_calls"]})
        else:
            self.messages.append({"role": "assistant", "content": text})
            found = call_in(text) if self._reads_text else None
            calls = (found,) if found is not None else ()
        return Said(calls, text, usage)

    def answer(self, results: Sequence[tuple[Call, str]], note: str = "") -> None:
        """Tell the model what became of its calls, with a note below the last one."""
        for place, (call, result) in enumerate(results):
            last = place == len(results) - 1
            text = f"{result}\n({note})" if last and note else result
            if call.id:
                self.messages.append({"role": TOOL, "tool_call_id": call.id, "content": text})
            else:
                self.messages.append({"role": "user", "content": text})

    def tell(self, text: str) -> None:
        """Say something to the model that answers no call."""
        self.messages.append({"role": "user", "content": text})


def calls_of(message: Message) -> tuple[Call, ...]:
    """The tool calls of a model's message, in order."""
    found = message.get("tool_calls")
    entries = found if isinstance(found, Sequence) and not isinstance(found, str) else ()
    return tuple(_call(entry) for entry in entries if isinstance(entry, Mapping))


def call_in(text: str) -> Call | None:
    """The first JSON object of a text that names a tool, as a call; None where there is none."""
    decoder = json.JSONDecoder(strict=False)
    for match in re.finditer(r"\{", text):
        try:
            value, _ = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        if isinstance(value, dict) and TOOL in value:
            rest = {key: item for key, item in value.items() if key != TOOL}
            return Call(str(value[TOOL]), rest)
    return None


def _call(entry: Mapping[str, object]) -> Call:
    function = entry.get("function")
    about: Mapping[str, object] = function if isinstance(function, Mapping) else {}
    name, given, id_ = str(about.get("name")), about.get("arguments"), str(entry.get("id") or "")
    try:
        value = json.loads(given, strict=False) if isinstance(given, str) and given else given or {}
    except ValueError as error:
        return Call(name, {}, id_, f"its arguments are no valid JSON: {error}")
    if not isinstance(value, Mapping):
        return Call(name, {}, id_, "its arguments are no JSON object")
    return Call(name, value, id_)
