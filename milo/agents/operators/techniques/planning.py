"""Thinking first: a short plan is asked for and put below the task."""

from __future__ import annotations

from collections.abc import Callable

from .messages import Conversation, edited_task

REQUEST = "\n\nIn at most three short lines, say how to do this. No code."
LONGEST = 500


def with_plan(conversation: Conversation, ask: Callable[..., str]) -> Conversation:
    """The conversation with the model's own short plan below the task."""
    plan = ask(edited_task(conversation, lambda task: task + REQUEST))
    return edited_task(conversation, lambda task: f"{task}\n\nPlan:\n{plan[:LONGEST].strip()}")
