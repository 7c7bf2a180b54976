"""Bounded history: a conversation keeps its start and its latest turns, and no message is long."""

from __future__ import annotations

from .messages import Conversation

OPENING = 2
TAIL_SHARE = 3
"""One part in so many of a clipped message is its end: errors stand there."""


def with_recent(conversation: Conversation, turns: int) -> Conversation:
    """The opening messages and the last `turns` pairs of a reply and an observation."""
    if isinstance(conversation, str) or len(conversation) <= OPENING + 2 * turns:
        return conversation
    return [*conversation[:OPENING], *conversation[-2 * turns :]]


def with_clipped(conversation: Conversation, chars: int) -> Conversation:
    """The conversation after its opening with messages of at most about `chars` characters, each
    with its start and its end."""
    if isinstance(conversation, str):
        return conversation
    later = [{**m, "content": clipped(m["content"], chars)} for m in conversation[OPENING:]]
    return [*conversation[:OPENING], *later]


def clipped(text: str, chars: int) -> str:
    """A long text's start and end, with how much is left out between them."""
    if not isinstance(text, str) or len(text) <= chars:
        return text
    tail = chars // TAIL_SHARE
    left_out = len(text) - chars
    return f"{text[: chars - tail]}\n... {left_out} characters left out ...\n{text[-tail:]}"
