"""What a Dockerfile asks of whoever builds it: which images first, and which builder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

BUILDER_ARGUMENT = re.compile(r"ARG\s+((?:TARGET|BUILD)(?:PLATFORM|OS|ARCH|VARIANT))\s*$", re.I)
HEREDOC = re.compile(r"(?:^|\s)\d*<<-?(?P<quote>[\"']?)[A-Za-z_]\w*(?P=quote)")
FLAGS = re.compile(
    r"(?:RUN\s+(?:--\S+\s+)*(--(?:mount|network|security)\b\S*)"
    r"|(?:COPY|ADD)\s+(?:--\S+\s+)*(--(?:chmod|link|parents|exclude|checksum|keep-git-dir)\b\S*))",
    re.I,
)
SYNTAX = re.compile(r"\s*#\s*syntax\s*=\s*(\S+)", re.I)
FROM = re.compile(r"FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?", re.I)
COPY_FROM = re.compile(r"(?:COPY\s+(?:--\S+\s+)*--from=|RUN\s.*--mount=\S*\bfrom=)([^\s,]+)", re.I)
SCRATCH = "scratch"


class Builder(StrEnum):
    """What not every container engine's builder can do."""

    BUILDKIT = "buildkit"
    HEREDOCS = "heredocs"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """One instruction that asks for it: `line` counts from 1, `words` are the telling part."""

    builder: Builder
    line: int
    words: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Instruction:
    """One instruction with its continuation lines joined; `line` is where it starts, from 1."""

    line: int
    text: str


def instructions(text: str) -> tuple[Instruction, ...]:
    """The instructions of a Dockerfile, comments dropped."""
    found: list[Instruction] = []
    begun, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        begun = begun if parts else number
        goes_on = line.rstrip().endswith("\\")
        parts.append(line.rstrip()[:-1] if goes_on else line)
        if not goes_on:
            found.append(Instruction(line=begun, text=" ".join(parts).strip()))
            parts = []
    if parts:
        found.append(Instruction(line=begun, text=" ".join(parts).strip()))
    return tuple(found)


def asks_of(text: str) -> tuple[Ask, ...]:
    """What a Dockerfile asks for that the oldest builders don't know, the first of each kind.

    One that names its own syntax brings here-documents along.
    """
    found: dict[Builder, Ask] = {}
    brings = _syntax(text) != ""
    for instruction in instructions(text):
        for builder, words in _wants(instruction.text):
            kind = Builder.BUILDKIT if brings else builder
            found.setdefault(kind, Ask(builder=kind, line=instruction.line, words=words))
    return tuple(found.values())


def bases_of(text: str) -> tuple[str, ...]:
    """References of images that must be there first, as far as no argument decides on them."""
    stages = {SCRATCH}
    wanted: dict[str, None] = dict.fromkeys([_syntax(text)] if _syntax(text) else [])
    for instruction in instructions(text):
        begun, copied = FROM.match(instruction.text), COPY_FROM.match(instruction.text)
        name = begun[1] if begun else copied[1] if copied else ""
        known = name.lower() in stages or name.isdigit() or "$" in name
        if name and not known:
            wanted[name] = None
        if begun and begun[2]:
            stages.add(begun[2].lower())
    return tuple(wanted)


def _wants(text: str) -> list[tuple[Builder, str]]:
    found = []
    word = text.partition(" ")[0].upper()
    flag, argument = FLAGS.match(text), BUILDER_ARGUMENT.match(text)
    if flag:
        found.append((Builder.BUILDKIT, f"{word} {flag[1] or flag[2]}"))
    if argument:
        found.append((Builder.BUILDKIT, f"ARG {argument[1]}"))
    heredoc = HEREDOC.search(text) if word in ("RUN", "COPY", "ADD") else None
    if heredoc:
        found.append((Builder.HEREDOCS, f"{word} {heredoc[0].strip()}"))
    return found


def _syntax(text: str) -> str:
    """The frontend that a Dockerfile names in its first lines."""
    for line in text.splitlines():
        if not line.lstrip().startswith("#"):
            return ""
        named = SYNTAX.match(line)
        if named:
            return named[1]
    return ""
