"""Acting in Python: a program in a reply becomes a shell script that runs it."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable

from .blocks import SHELL, Block, blocks_in

KNOWN = re.findall(
    r"\w+",
    "collections csv datetime decimal fractions glob itertools json math os pathlib random re"
    " shutil statistics string sys time",
)


def with_imports(program: str) -> str:
    """The program, with imports of the well-known modules that it uses but forgot to import."""
    try:
        nodes = list(ast.walk(ast.parse(program)))
    except (SyntaxError, ValueError):
        return program
    used = {
        n.value.id for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
    }
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {
        a.asname or a.name
        for n in nodes
        if isinstance(n, ast.Import | ast.ImportFrom)
        for a in n.names
    }
    forgotten = [name for name in KNOWN if name in used - bound]
    return "".join(f"import {name}\n" for name in forgotten) + program


def as_script(program: str) -> str:
    """A shell script that runs a Python program from its standard input."""
    return f"python3 - <<'END_OF_PROGRAM'\n{with_imports(program).rstrip()}\nEND_OF_PROGRAM\n"


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
