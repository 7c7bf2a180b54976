"""What a harness did to the workspace, as bounded text for the trace."""

from __future__ import annotations

from collections.abc import Mapping

from milo.core.tree import File, FileTree

FILE_CHARS = 4000
TOTAL_CHARS = 32_000
TOO_MUCH = "(workspace)"
DELETED = "[deleted]"


def changed_texts(before: FileTree, after: FileTree) -> Mapping[str, str]:
    """Text of the files made or changed, by path; long ones cut, binary ones named only."""
    texts: dict[str, str] = {}
    room = TOTAL_CHARS
    for path in before.changed_paths(after):
        if room <= 0:
            texts[TOO_MUCH] = "[more files changed than are shown]"
            break
        text = _text(after.get(path), min(FILE_CHARS, room))
        room -= len(text) + len(path)
        texts[path] = text
    return texts


def _text(file: File | None, limit: int) -> str:
    if file is None:
        return DELETED
    data = file.data[: 4 * limit]
    if b"\0" in data:
        return f"[{len(file.data)} bytes, not text]"
    text = data.decode(errors="replace")
    if len(text) <= limit and len(data) == len(file.data):
        return text
    return f"{text[:limit]}\n[… cut, {len(file.data)} bytes in all]"
