"""Worked examples: invented tasks with replies of the wanted form come before the task."""

from __future__ import annotations

from typing import NamedTuple

from .messages import Conversation, edited_task


class Example(NamedTuple):
    """An invented task and the reply to it."""

    task: str
    reply: str


PYTHON = (
    Example(
        "A pond holds 48 frogs; 5 groups of 6 hop away. Write the number that stays to `pond.txt`.",
        "```python\nstay = 48 - 5 * 6\nopen('pond.txt', 'w').write(str(stay) + '\\n')\n```",
    ),
    Example(
        'Put the words of `zoo.txt` that end in s into `plural.json` as a list under "words".',
        "```python\nimport json\nwords = open('zoo.txt').read().split()\n"
        "found = [w for w in words if w.endswith('s')]\n"
        "json.dump({'words': found}, open('plural.json', 'w'))\n```",
    ),
)
BASH = (
    Example(
        "A pond holds 48 frogs; 5 groups of 6 hop away. Write the number that stays to `pond.txt`.",
        "```bash\necho $((48 - 5 * 6)) > pond.txt\n```",
    ),
    Example(
        "Put the words of `zoo.txt` that end in s into `plural.txt`, one per line.",
        "```bash\ntr -s ' ' '\\n' < zoo.txt | grep 's$' > plural.txt\n```",
    ),
)


def with_examples(conversation: Conversation, language: str, count: int) -> Conversation:
    """The conversation with `count` worked examples in a language before the task."""
    chosen = (PYTHON if language == "python" else BASH)[:count]
    if isinstance(conversation, str):
        shown = "\n\n".join(f"Task: {e.task}\nReply:\n{e.reply}" for e in chosen)
        return edited_task(conversation, lambda task: f"{shown}\n\nTask: {task}\nReply:")
    turns = [
        {"role": role, "content": content}
        for example in chosen
        for role, content in (("user", example.task), ("assistant", example.reply))
    ]
    first = next((i for i, m in enumerate(conversation) if m["role"] == "user"), 0)
    return [*conversation[:first], *turns, *conversation[first:]]
