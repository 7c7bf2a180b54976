"""Which parts of a harness an edit touched: files, and in Python source the definitions."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from milo.core.tree import FileTree

MOST = 16
"""Parts that are named of one edit; an edit of more is a rewrite."""


def touched_between(parent: FileTree, child: FileTree) -> tuple[str, ...]:
    """The parts that differ, in the order of their files: ``main.py:solve`` for what a name at the
    top of a Python module stands for, else the file alone. At most `MOST`."""
    found = (part for path in parent.changed_paths(child) for part in _parts(path, parent, child))
    return tuple(dict.fromkeys(found))[:MOST]


def _parts(path: str, parent: FileTree, child: FileTree) -> Iterator[str]:
    if not path.endswith(".py") or path not in parent or path not in child:
        yield path
        return
    texts = parent.text(path), child.text(path)
    old, new = (text.splitlines() for text in texts)
    try:
        owners = tuple(_owners(text) for text in texts)
    except (SyntaxError, ValueError):
        yield path
        return
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, *spans in matcher.get_opcodes():
        if tag == "equal":
            continue
        for owner, first, last in zip(owners, spans[::2], spans[1::2], strict=True):
            for line in range(first + 1, last + 1):
                name = owner.get(line, "")
                yield f"{path}:{name}" if name else path


def _owners(text: str) -> dict[int, str]:
    """By line number, the name at the top of the module that the line belongs to."""
    owners: dict[int, str] = {}
    for node in ast.parse(text).body:
        name = _name(node)
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)])
        for line in range(first, (node.end_lineno or node.lineno) + 1):
            owners[line] = name
    return owners


def _name(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case ast.Import() | ast.ImportFrom():
            return "imports"
        case _:
            return ""
