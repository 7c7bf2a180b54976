"""Cutting texts to size, so that a reader sees that something is left out, and how much."""

from __future__ import annotations


def cut(text: str, limit: int) -> str:
    """The text within a limit; a cut is marked with what is left out."""
    if len(text) <= limit:
        return text
    return f"{text[: max(0, limit)]}... ({len(text) - max(0, limit)} more characters)"


def middle_cut(text: str, limit: int) -> str:
    """Head and tail of the text within a limit, the tail longer: what went wrong stands last."""
    if len(text) <= limit:
        return text
    head = max(0, limit) // 3
    tail = max(0, limit) - head
    lost = len(text) - head - tail
    return f"{text[:head]}\n[... {lost} characters left out ...]\n{text[len(text) - tail :]}"


def quoted(text: str) -> str:
    """The text as a block whose lines can't be taken for headings of the brief."""
    return "\n".join(f"| {line}" for line in text.splitlines())
