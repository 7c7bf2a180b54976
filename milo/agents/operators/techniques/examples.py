"""Worked examples: invented tasks with replies of the wanted form come before the task."""

from __future__ import annotations

from typing import NamedTuple

from .messages import Conversation, edited_task


class Example(NamedTuple):
    """An invented task and the reply to it."""

    task: str
    reply: str


BIRD = (
    "Describe the bird of `bird.txt` in `bird.json` with `species`, `age` and `tame`.\n\n"
    "bird.txt:\n```\nOur old parrot Coco, 31 years of age, eats from the hand.\n```"
)
RIDES = (
    "`rides.txt` lists day, horse and km. Put the horse with most rides on tue in `horse.txt`.\n\n"
    "rides.txt:\n```\nmon bella 12\ntue rex 30\n...\n```"
)
STAMPS = (
    "Ida has 48 stamps. She gives away 5 sets of 6, then sells the rest at 2 coins apiece. "
    "Put the coins that she gets in `coins.txt`."
)
EMPTY = "Throw away all files here that are empty."
PYTHON = (
    Example(
        BIRD,
        "```python\nimport json\nbird = {'species': 'parrot', 'age': 31, 'tame': True}\n"
        "json.dump(bird, open('bird.json', 'w'))\n```",
    ),
    Example(
        RIDES,
        "```python\nrides = {}\nfor line in open('rides.txt'):\n    fields = line.split()\n"
        "    if fields[0] == 'tue':\n        rides[fields[1]] = rides.get(fields[1], 0) + 1\n"
        "open('horse.txt', 'w').write(max(rides, key=rides.get))\n```",
    ),
    Example(
        STAMPS,
        "```python\nstamps = 48\ngiven = 5 * 6\nrest = stamps - given\ncoins = rest * 2\n"
        "open('coins.txt', 'w').write(str(coins))\n```",
    ),
    Example(
        EMPTY,
        "```python\nimport os\nfor name in os.listdir('.'):\n"
        "    if os.path.getsize(name) == 0:\n        os.remove(name)\n```",
    ),
)
BASH = (
    Example(
        BIRD,
        '```bash\necho \'{"species": "parrot", "age": 31, "tame": true}\' > bird.json\n```',
    ),
    Example(
        RIDES,
        "```bash\nawk '$1 == \"tue\" {print $2}' rides.txt | sort | uniq -c | sort -n | tail -1"
        " | awk '{print $2}' > horse.txt\n```",
    ),
    Example(
        STAMPS,
        "```bash\ngiven=$((5 * 6))\nrest=$((48 - given))\necho $((rest * 2)) > coins.txt\n```",
    ),
    Example(EMPTY, "```bash\nfind . -type f -size 0 -delete\n```"),
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
