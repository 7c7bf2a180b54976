"""New versions of code: a block that redefines a file's functions is put into that file."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from pathlib import Path

from .blocks import Block, blocks_in
from .direct import write_script
from .workspace import named_files, task_text

Definition = ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef


def definitions(text: str) -> dict[str, Definition]:
    """Top-level functions and classes of a Python text by name; empty if it does not parse."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return {}
    return {node.name: node for node in body if isinstance(node, Definition)}


def merged(old: str, new: str) -> str:
    """`old` with those definitions that `new` gives again replaced by the new ones.

    Imports that only `new` has come first.
    """
    before, after = definitions(old), definitions(new)
    lines, new_lines = old.splitlines(), new.splitlines()
    for name in sorted(before.keys() & after.keys(), key=lambda n: -before[n].lineno):
        first, last = before[name].lineno - 1, before[name].end_lineno
        lines[first:last] = new_lines[after[name].lineno - 1 : after[name].end_lineno]
    imports = [line for line in new_lines if line.startswith(("import ", "from "))]
    missing = [line for line in imports if line not in lines]
    return "\n".join([*missing, *lines])


def rewritten_file(reply: str) -> tuple[str, str]:
    """The existing file that a reply gives anew, and its new text; empty strings for none."""
    sources = [Path(name) for name in named_files(task_text()) if name.endswith(".py")]
    for block in blocks_in(reply) or [Block("", reply)]:
        new = definitions(block.text)
        writes = "open(" in block.text or "write_text" in block.text
        for path in sources:
            if path.is_file() and not writes and new.keys() & definitions(path.read_text()).keys():
                return path.as_posix(), merged(path.read_text(), block.text)
    return "", ""


def redefined_code(extract: Callable[..., str]) -> Callable[..., str]:
    """Put redefined functions into the file they come from; else read the reply as before."""

    @functools.wraps(extract)
    def chosen(reply: str) -> str:
        name, text = rewritten_file(reply)
        return write_script(name, text) if name else extract(reply)

    return chosen
