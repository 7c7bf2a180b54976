"""An optimizer program as the mutator sees it: its schedule, and the moves that it may name."""

from __future__ import annotations

import ast
import pprint
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from milo.core.tree import FileTree

VARIABLE = "SCHEDULE"
LEADING = ("state", "seconds")
NAMED, SHARE = "move", "share"

Entry = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """`path` holds the schedule; `moves` are the moves by name with their parameters' defaults."""

    tree: FileTree
    path: str
    schedule: tuple[Entry, ...]
    moves: Mapping[str, Mapping[str, Any]]

    def with_schedule(self, schedule: Sequence[Entry]) -> FileTree:
        """The tree with another schedule; everything else of the file is kept."""
        text = self.tree.text(self.path)
        node = _assignment(text)
        assert node is not None, "the schedule was read from this file"
        lines = text.splitlines(keepends=True)
        body = pprint.pformat([dict(entry) for entry in schedule], width=96, sort_dicts=False)
        new = f"{VARIABLE} = [\n {body[1:-1]},\n]\n"
        changed = [*lines[: node.lineno - 1], new, *lines[(node.end_lineno or node.lineno) :]]
        return self.tree.with_texts({self.path: "".join(changed)})


def read_program(tree: FileTree) -> Program | None:
    """The program in a harness, or None where it has no schedule or no moves."""
    sources = {path: tree.text(path) for path in tree if path.endswith(".py")}
    for path, text in sources.items():
        schedule = _schedule(text)
        if schedule:
            moves = {k: v for source in sources.values() for k, v in _moves(source).items()}
            known = {entry[NAMED] for entry in schedule} <= set(moves)
            return Program(tree=tree, path=path, schedule=schedule, moves=moves) if known else None
    return None


def _assignment(text: str) -> ast.Assign | None:
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    for node in body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == VARIABLE for target in node.targets
        ):
            return node
    return None


def _schedule(text: str) -> tuple[Entry, ...]:
    node = _assignment(text)
    try:
        value = ast.literal_eval(node.value) if node is not None else ()
    except ValueError:
        return ()
    if not isinstance(value, list | tuple):
        return ()
    fit = all(isinstance(entry, dict) and isinstance(entry.get(NAMED), str) for entry in value)
    return tuple(value) if fit else ()


def _moves(text: str) -> Mapping[str, Mapping[str, Any]]:
    """Module-level functions whose first parameters are a state and seconds, with no return."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return {}
    return {
        node.name: _defaults(node.args)
        for node in body
        if isinstance(node, ast.FunctionDef) and _is_move(node)
    }


def _is_move(node: ast.FunctionDef) -> bool:
    names = tuple(argument.arg for argument in node.args.args[: len(LEADING)])
    returns = isinstance(node.returns, ast.Constant) and node.returns.value is None
    settable = len(node.args.args) - len(LEADING) == len(node.args.defaults)
    return names == LEADING and returns and settable and not node.name.startswith("_")


def _defaults(arguments: ast.arguments) -> Mapping[str, Any]:
    found = {}
    for argument, default in zip(arguments.args[len(LEADING) :], arguments.defaults, strict=True):
        try:
            found[argument.arg] = ast.literal_eval(default)
        except ValueError:
            continue
    return found
