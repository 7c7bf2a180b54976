"""Direct answers: a reply that is a file's content, and no program, is written to the file."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable

from .blocks import SHELL, blocks_in
from .workspace import missing_outputs

PLAIN = ("", "text", "txt", "plaintext", "json", "csv", "markdown", "md", "yaml")
LONGEST_ANSWER = 120


def answer_in(reply: str) -> str:
    """The plain content of a reply, or "" where it may be a program."""
    found = blocks_in(reply)
    if any(block.language not in PLAIN for block in found):
        return ""
    if found:
        last = found[-1]
        return last.text if last.language or is_json(last.text) else ""
    text = reply.strip()
    return text if is_json(text) or (len(text) <= LONGEST_ANSWER and "\n" not in text) else ""


def is_json(text: str) -> bool:
    """Whether a text is a JSON object or list."""
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def write_script(name: str, text: str) -> str:
    """A shell script that writes a text to a file."""
    return f"cat > '{name}' <<'END_OF_FILE'\n{text.rstrip()}\nEND_OF_FILE\n"


def plain_answers(extract: Callable[..., str]) -> Callable[..., str]:
    """Write a plain reply to the one file that the task still lacks; else read it as before."""

    @functools.wraps(extract)
    def chosen(reply: str) -> str:
        outputs = missing_outputs()
        answer = answer_in(reply) if len(outputs) == 1 else ""
        looks_like_shell = answer.split(" ")[0] in (*SHELL, "cat", "echo", "mv", "cp", "ls", "DONE")
        return (
            extract(reply) if not answer or looks_like_shell else write_script(outputs[0], answer)
        )

    return chosen
