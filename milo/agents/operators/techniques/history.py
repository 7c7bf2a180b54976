"""Bounded history: a long conversation keeps its start and its latest turns."""

from __future__ import annotations

from .messages import Conversation

OPENING = 2


def with_recent(conversation: Conversation, turns: int) -> Conversation:
    """The opening messages and the last `turns` pairs of a reply and an observation."""
    if isinstance(conversation, str) or len(conversation) <= OPENING + 2 * turns:
        return conversation
    return [*conversation[:OPENING], *conversation[-2 * turns :]]
