"""Acting in Python: a program in a reply becomes a shell script that runs it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable

from .blocks import SHELL, Block, blocks_in


def as_script(program: str) -> str:
    """A shell script that runs a Python program from its standard input."""
    return f"python3 - <<'END_OF_PROGRAM'\n{program.rstrip()}\nEND_OF_PROGRAM\n"


def is_python(text: str) -> bool:
    """Whether a text parses as Python and does something a shell line would not."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    kinds = (ast.Import, ast.ImportFrom, ast.Assign, ast.With, ast.For, ast.FunctionDef)
    return any(isinstance(node, kinds) or _is_call(node) for node in tree.body)


def _is_call(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def python_in(reply: str) -> str:
    """The program of a reply: its longest Python block, or all of it if it is a program."""
    found = blocks_in(reply) or [Block("", reply)]
    programs = [
        block.text
        for block in found
        if block.language in ("python", "py", "python3")
        or (block.language not in SHELL and is_python(block.text))
    ]
    return max(programs, key=len, default="")


def python_programs(extract: Callable[..., str]) -> Callable[..., str]:
    """Run the Python program of a reply; a reply without one is read as before."""

    @functools.wraps(extract)
    def chosen(reply: str) -> str:
        program = python_in(reply)
        return as_script(program) if program else extract(reply)

    return chosen
