"""Reading replies leniently: every code block, unclosed fences and shell prompts included."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import NamedTuple

SHELL = ("bash", "sh", "shell", "console", "zsh")
FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+-]*)[ \t]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.M)


class Block(NamedTuple):
    """A fenced block: its language tag in lower case and its text."""

    language: str
    text: str


def blocks_in(reply: str) -> list[Block]:
    """All blocks of a reply; a fence that is never closed ends with the reply."""
    found = [Block(m.group(1).lower(), m.group(2)) for m in FENCE.finditer(reply)]
    return [block for block in found if block.text.strip()]


def without_prompts(text: str) -> str:
    """The text without leading ``$`` prompts."""
    return re.sub(r"^[ \t]*\$ ", "", text, flags=re.M)


def best_block(extract: Callable[..., str]) -> Callable[..., str]:
    """Prefer the longest shell block, then the longest block; else what `extract` finds."""

    @functools.wraps(extract)
    def chosen(reply: str) -> str:
        found = blocks_in(reply)
        shell = [block for block in found if block.language in SHELL]
        candidates = shell or [block for block in found if block.language in ("", "text")] or found
        if not candidates:
            return extract(reply)
        return without_prompts(max(candidates, key=lambda block: len(block.text)).text)

    return chosen
