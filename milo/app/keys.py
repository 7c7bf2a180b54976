"""`milo keys`: what `milo run` can be told, from the dataclasses and the files of `conf/`."""

from __future__ import annotations

import ast
import inspect
import typing
from dataclasses import fields, is_dataclass

from milo.app.config import INTERNAL_OPTIONS, groups
from milo.app.convert import flat
from milo.app.face import Face
from milo.app.overrides import ALIASES


def documented(cls: type, prefix: str = "") -> dict[str, str]:
    """Every dotted key below a dataclass with the docstring under its field."""
    hints = typing.get_type_hints(cls)
    docs = _field_docs(cls)
    found: dict[str, str] = {}
    for f in fields(cls):
        key, hint = f"{prefix}{f.name}", hints[f.name]
        if is_dataclass(hint):
            found |= documented(typing.cast(type, hint), f"{key}.")
        else:
            found[key] = " ".join(docs.get(f.name, "").split())
    return found


def describe_keys() -> str:
    """The text of `milo keys`: groups with their options, values with defaults, short names."""
    defaults = flat(Face())
    options = {
        group: ", ".join(name for name in names if name not in INTERNAL_OPTIONS)
        for group, names in groups().items()
    }
    lines = ["Groups (milo run GROUP=OPTION):"]
    lines += [f"  {group:<14} {names}" for group, names in options.items()]
    lines += ["", "Values (milo run KEY=VALUE), with their defaults:"]
    for key, doc in documented(Face).items():
        lines.append(f"  {key}={_shown(defaults[key])}".ljust(40) + f"  {doc}".rstrip())
    lines += ["", "Short names:"]
    lines += [f"  {short:<20} {full}" for short, full in ALIASES.items()]
    return "\n".join(lines)


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    return str(value)


def _field_docs(cls: type) -> dict[str, str]:
    """The string under each field of a class, read from its source."""
    (body,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(body, ast.ClassDef)
    docs: dict[str, str] = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match text:
                case ast.Expr(value=ast.Constant(value=str(doc))):
                    docs[field.target.id] = doc
    return docs
