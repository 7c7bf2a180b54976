"""Worked examples: the invented tasks most like this one come before it, with their replies."""

from __future__ import annotations

import re
from pathlib import Path

from .library import LIBRARY, Example
from .messages import Conversation, edited_task
from .runs import trial
from .workspace import named_files, task_text

LEAST_LIKENESS = 0.3
TRAITS = {
    "counts": r"\bhow many\b|\bcount\b|\bnumber of\b",
    "folder": r"\bfolder\b|\bfiles\b|\bdirectory\b",
    "most": r"\bmost\b|\bleast\b|\bfewest\b",
    "extreme": r"\b(?:long|short|large|small|high|low|fast|slow|old|new|late|great|cheap)e?st\b",
}


def shape(text: str, shown: str = "") -> frozenset[str]:
    """What a task is made of: kinds of files, read or made, numbers, counting, folder work."""
    names = named_files(text)
    read = [name for name in names if name in shown or Path(name).exists()]
    found = {name.rsplit(".", 1)[-1] for name in names}
    found |= {"reads"} if read else set()
    found |= {"makes"} if len(read) < len(names) else set()
    found |= {"numbers"} if len(re.findall(r"\b\d+\b", text)) > 2 else set()
    found |= {trait for trait, words in TRAITS.items() if re.search(words, text, re.IGNORECASE)}
    return frozenset(found)


def likeness(example: Example, task: frozenset[str]) -> float:
    """Shared traits of an example and a task, in [0, 1]."""
    own = shape(example.task, example.file)
    return len(own & task) / max(1, len(own | task))


def nearest(count: int) -> list[Example]:
    """The examples most like the task, at most `count`, the nearest last.

    Each further try of a task begins one example further down.
    """
    task = shape(task_text())
    order = sorted(LIBRARY, key=lambda example: -likeness(example, task))[trial[0] :]
    return [e for e in reversed(order[:count]) if likeness(e, task) >= LEAST_LIKENESS]


def reply(example: Example, language: str) -> str:
    """An example's reply, as a fenced block."""
    code = example.python if language == "python" else example.bash
    return f"```{language}\n{code}\n```"


def with_examples(conversation: Conversation, language: str, count: int) -> Conversation:
    """The conversation with `count` worked examples in a language before the task."""
    chosen = nearest(count)
    if not chosen:
        return conversation
    if isinstance(conversation, str):
        shown = "\n\n".join(f"Task: {e.question()}\nReply:\n{reply(e, language)}" for e in chosen)
        return edited_task(conversation, lambda task: f"{shown}\n\nTask: {task}\nReply:")
    turns = [
        {"role": role, "content": content}
        for example in chosen
        for role, content in (("user", example.question()), ("assistant", reply(example, language)))
    ]
    first = next((i for i, m in enumerate(conversation) if m["role"] == "user"), 0)
    return [*conversation[:first], *turns, *conversation[first:]]
