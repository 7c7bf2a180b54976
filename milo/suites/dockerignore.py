"""What a `.dockerignore` keeps out of a build, by the rules of the engine's client.

The engine itself ignores nothing: whoever sends it the files leaves these out. The last pattern
that matches a path, or a folder above it, decides; one that begins with ``!`` brings paths back.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from pathlib import Path

from milo.core.errors import TaskError
from milo.core.tree import FileTree
from milo.suites.lazy import FolderTree

IGNORE = ".dockerignore"
ALWAYS_SENT = frozenset(("Dockerfile", IGNORE))
TOKENS = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|\[\^?[\w.-]+\]|\\.|.", re.DOTALL)
WORDS = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def build_context(root: Path, hidden: frozenset[str] = frozenset()) -> FileTree:
    """The files below a folder that a build of it is sent; as `FolderTree` in all else.

    Raises `TaskError` also for patterns that can't be read.
    """
    whole = FolderTree(root, hidden)
    if IGNORE not in whole:
        return whole
    try:
        return FolderTree(root, hidden | ignored(whole.text(IGNORE), whole))
    except re.error as error:
        raise TaskError(str(root / IGNORE), "patterns of paths", str(error)) from error


def ignored(text: str, paths: Iterable[str]) -> frozenset[str]:
    """The paths that a `.dockerignore` with this text keeps out; raises `re.error`."""
    patterns = [_pattern(line) for line in text.splitlines() if _says_something(line)]
    found = set()
    for path in paths:
        out = False
        for brings_back, pattern in patterns:
            if pattern.fullmatch(path):
                out = not brings_back
        if out and path not in ALWAYS_SENT:
            found.add(path)
    return frozenset(found)


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _pattern(line: str) -> tuple[bool, re.Pattern[str]]:
    """Whether a line brings paths back, and which: what it names, and everything below."""
    text = line.strip()
    brings_back = text.startswith("!")
    name = posixpath.normpath(text.removeprefix("!").strip()).lstrip("/")
    words = "".join(_word(token) for token in TOKENS.findall(name))
    return brings_back, re.compile(f"(?:{words})(?:/.*)?" if name != "." else ".*", re.DOTALL)


def _word(token: str) -> str:
    if token in WORDS:
        return WORDS[token]
    if token.startswith("[") and len(token) > 1:
        return token
    return re.escape(token[-1])
