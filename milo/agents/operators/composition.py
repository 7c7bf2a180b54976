"""A graft without a model: one parent's source with what only the other one's techniques do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from milo.agents.operators.edits import VARIED, ask_for_python
from milo.agents.operators.operator import Edit
from milo.agents.operators.surgery import (
    CannotEdit,
    arguments_of,
    decorate,
    option,
    record_runs,
    set_option,
    techniques_in,
    wrap_calls,
)
from milo.core.tree import FileTree

READING = frozenset({"best_block", "python_programs", "redefined_code", "plain_answers"})
SENDING = frozenset({"with_clipped", "with_recent", "with_files", "with_examples"})
OPTIONS = ("temperature", "max_tokens")


def composed(first: FileTree, donor: FileTree) -> tuple[FileTree, tuple[str, ...]]:
    """`first` with everything carried over from `donor` that it lacks, and the names of it."""
    tree, carried = first, []
    for name, edit in _missing(first, donor):
        try:
            tree = edit(tree)
        except CannotEdit:
            continue
        carried.append(name)
    return tree, tuple(carried)


def graft(first: FileTree, donor: FileTree) -> tuple[FileTree, tuple[str, ...]]:
    """A child that differs from both parents, and what was carried over; the tree of `first`
    unchanged where neither direction gives one."""
    for base, other in ((first, donor), (donor, first)):
        child, carried = composed(base, other)
        if carried and child not in (first, donor):
            return child, carried
    return first, ()


def _missing(first: FileTree, donor: FileTree) -> Iterator[tuple[str, Edit]]:
    for name in sorted(techniques_in(donor) - techniques_in(first)):
        edit = _carrying(name, arguments_of(donor, name))
        if edit is not None:
            yield name, edit
    for key in OPTIONS:
        value = option(donor, key)
        if value and not option(first, key) and (_is_literal(value) or value == VARIED):
            yield key, _setting(key, value)


def _carrying(name: str, arguments: str) -> Edit | None:
    """The edit that brings one technique along, with the donor's parameters."""
    if name == "python_programs":
        return lambda tree: ask_for_python(decorate(tree, "extract", name))
    if name in READING:
        return lambda tree: decorate(tree, "extract", name)
    if name in SENDING:
        extra = f", {arguments}" if arguments else ""
        return lambda tree: wrap_calls(tree, name, extra)
    if name == "recorded_run":
        return record_runs
    if name in ("with_plan", "stop_when_done", "by_try"):
        return None
    brackets = f"({arguments})" if arguments else ""
    return lambda tree: decorate(record_runs(tree), "solve", name, brackets)


def _setting(key: str, value: str) -> Edit:
    return lambda tree: set_option(tree, key, value)


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True
