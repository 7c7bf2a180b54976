"""Context: the model is shown which files there are, and how the small ones begin."""

from __future__ import annotations

from pathlib import Path

from .messages import Conversation, edited_task
from .workspace import named_files, snapshot, task_text

MAX_LISTED = 25


def head(data: bytes, chars: int) -> str:
    """The first `chars` characters of a text file by whole lines; "" for binary data."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    if "\0" in text or len(text) <= chars:
        return "" if "\0" in text else text.rstrip()
    return text[:chars].rsplit("\n", 1)[0] + "\n..."


def description(chars: int) -> str:
    """A listing of the folder, and the heads of files within `chars` characters each and 3 in all.

    Files that the task names come first.
    """
    files = snapshot()
    named = [Path(name).name for name in named_files(task_text())]
    order = sorted(files, key=lambda name: Path(name).name not in named)
    lines = ["Files in the folder: " + (", ".join(sorted(files)[:MAX_LISTED]) or "none")]
    left = 2 * chars
    for name in order:
        text = head(files[name], min(chars, left)) if left > 0 else ""
        if text:
            lines.append(f"{name}:\n```\n{text}\n```")
            left -= len(text)
    return "\n".join(lines)


def with_files(conversation: Conversation, chars: int) -> Conversation:
    """The conversation with the folder described below the task."""
    return edited_task(conversation, lambda task: f"{task}\n\n{description(chars)}")
