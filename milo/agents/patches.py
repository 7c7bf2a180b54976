"""Edits that a model writes: whole files or exact search/replace blocks, applied or refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

from milo.core.errors import MiloError, UserError
from milo.core.events import Change
from milo.core.harness import Harness
from milo.core.tree import FileTree, checked_path

FORMAT = """Answer in exactly this form:

TITLE: one line
DIAGNOSIS: one line, with figures from the evidence
HYPOTHESIS: one line that the next measurement can refute

then one or more of these two kinds of blocks:

=== FILE path/of/file
the whole new text of the file
=== END

=== EDIT path/of/file
<<<<<<< SEARCH
text that stands in the file exactly once
=======
the text in its place
>>>>>>> REPLACE
=== END
"""
BLOCK = re.compile(r"^=== (FILE|EDIT) (.+?)[ \t]*\n(.*?)^=== END[ \t]*$", re.DOTALL | re.M)
REPLACEMENT = re.compile(
    r"^<<<<<<< SEARCH\n(.*?)^=======\n(.*?)^>>>>>>> REPLACE[ \t]*$", re.DOTALL | re.M
)


class EditRefused(MiloError):
    """A model's edit does not apply exactly; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """A parsed answer: the account, and the blocks as (kind, path, body)."""

    change: Change
    blocks: tuple[tuple[str, str, str], ...]


def parse(answer: str) -> Patch:
    """Read an answer; raises `EditRefused` where it holds no block or an unfinished one."""
    text = answer.replace("\r\n", "\n")
    blocks = tuple(BLOCK.findall(text))
    opened = len(re.findall(r"^=== (?:FILE|EDIT) ", text, re.M))
    if not blocks:
        raise EditRefused("the answer holds no complete FILE or EDIT block")
    if opened != len(blocks):
        raise EditRefused(f"{opened - len(blocks)} block(s) are not closed by '=== END'")
    account = Change(
        title=_field(text, "TITLE") or "untitled edit",
        diagnosis=_field(text, "DIAGNOSIS"),
        hypothesis=_field(text, "HYPOTHESIS"),
    )
    return Patch(change=account, blocks=blocks)


def applied(patch: Patch, parent: Harness) -> FileTree:
    """The child's tree; raises `EditRefused` where a block doesn't apply exactly or may not."""
    tree = parent.tree
    for kind, path, body in patch.blocks:
        check_editable(path, parent)
        text = body if kind == "FILE" else replaced(tree, path, body)
        tree = tree.with_texts({path: text})
    if tree == parent.tree:
        raise EditRefused("the child equals its parent")
    return tree


def replaced(tree: FileTree, path: str, body: str) -> str:
    """A file's text after the search/replace pairs of an EDIT block."""
    pairs = REPLACEMENT.findall(body)
    if not pairs or body.count("<<<<<<< SEARCH") != len(pairs):
        raise EditRefused(f"{path}: the SEARCH/REPLACE pairs are malformed")
    if path not in tree:
        raise EditRefused(f"{path}: no such file to edit")
    text = tree.text(path)
    for search, replacement in pairs:
        text = replace_once(text, search, replacement, path)
    return text


def replace_once(text: str, search: str, replacement: str, path: str) -> str:
    """Replace a text that must stand in the file exactly once."""
    found = text.count(search) if search else 0
    if found != 1:
        raise EditRefused(f"{path}: the search text stands in the file {found} times, not once")
    return text.replace(search, replacement)


def check_editable(path: str, parent: Harness) -> None:
    """Raises `EditRefused` where the path is no path, or the manifest forbids its change."""
    try:
        checked_path(path)
    except UserError as error:
        raise EditRefused(str(error)) from error
    if not parent.may_edit(path):
        raise EditRefused(f"{path}: the manifest does not allow to edit it")


def _field(text: str, name: str) -> str:
    match = re.search(rf"^{name}:[ \t]*(.+)$", text, re.M)
    return match.group(1).strip()[:500] if match else ""
