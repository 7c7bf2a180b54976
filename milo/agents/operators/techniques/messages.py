"""Changing what is sent to the model, whether it is a list of messages or one text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Conversation = Any
"""A list of {"role", "content"} messages, or the user's text alone."""


def edited_task(conversation: Conversation, edit: Callable[[str], str]) -> Conversation:
    """A copy in which the first user message, which states the task, is edited."""
    if isinstance(conversation, str):
        return edit(conversation)
    copy = [dict(message) for message in conversation]
    for message in copy:
        if message["role"] == "user":
            message["content"] = edit(message["content"])
            break
    return copy
