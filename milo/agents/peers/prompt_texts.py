"""The prompts of a harness as named texts: found in its files, and put back into them.

A prompt is a file of prose under its path, or a module-level constant of a Python file that holds a
text of several words, under ``FILE:CONSTANT``. All other source stays byte for byte.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

PROSE = (".md", ".txt")
WORDS = 4
"""A constant of fewer words is no prompt."""


def constants(source: str) -> dict[str, ast.Constant]:
    """The module-level constants of a Python source that hold a text of several words, in order."""
    found: dict[str, ast.Constant] = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
        if isinstance(target, ast.Name) and is_text and len(value.value.split()) >= WORDS:
            found[target.id] = value
    return found


def prompts_of(files: Mapping[str, str]) -> dict[str, str]:
    """Every prompt of a harness, by name."""
    prose = {path: text for path, text in files.items() if path.endswith(PROSE)}
    return prose | {
        f"{path}:{name}": value.value
        for path, source in files.items()
        if path.endswith(".py")
        for name, value in constants(source).items()
    }


def with_prompts(files: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, str]:
    """The files with these texts in their places."""
    changed = {path: texts.get(path, text) for path, text in files.items()}
    for path, source in files.items():
        nodes = constants(source) if path.endswith(".py") else {}
        at = {name: (node.lineno, node.col_offset) for name, node in nodes.items()}
        for name in sorted(nodes, key=at.__getitem__, reverse=True):  # what is before it stays
            text = texts.get(f"{path}:{name}", nodes[name].value)
            if text != nodes[name].value:
                changed[path] = replaced(changed[path], nodes[name], text)
    return changed


def replaced(source: str, node: ast.expr, text: str) -> str:
    """A source with one expression replaced by a text constant; positions are those of bytes."""
    lines = source.encode().splitlines(keepends=True)
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    assert node.end_lineno is not None
    end = lines[node.end_lineno - 1][node.end_col_offset :]
    after = end + b"".join(lines[node.end_lineno :])
    return (before + repr(text).encode() + after).decode()
