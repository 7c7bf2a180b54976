"""What a Dockerfile that only copies files amounts to: a starting tree, an environment, a workdir.

A local sandbox cannot build images. If a Dockerfile does nothing but choose a base, set WORKDIR
and ENV and COPY into the working directory, its result can be had without building.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from milo.core.tree import File, FileTree

TAKEN = frozenset(
    (
        *("", "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "proc", "dev", "sys"),
        *("run", "tmp", "root", "logs", "tests", "harness", "task", "solution"),
    )
)
"""Folders of the system and of ours: whoever works in them sees more than a copied tree."""
FOLLOWED = ("FROM", "WORKDIR", "ENV", "COPY")


@dataclass(frozen=True, kw_only=True, slots=True)
class Derived:
    """The start that a Dockerfile describes; `obstacle` says why it can't be had without a build.

    An empty `workdir` is the base image's. With an obstacle the other fields hold what was
    understood up to it.
    """

    workspace: FileTree = field(default_factory=FileTree)
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = ""
    obstacle: str = ""


class _Obstacle(Exception):
    """An instruction whose effect only a build can give."""


def derive(text: str, context: FileTree) -> Derived:
    """Read a Dockerfile whose build context is `context` (paths relative to it)."""
    state = _State(context)
    obstacle = ""
    lines = _instructions(text)
    try:
        # First by words alone: the context is read only where copying is all there is to do.
        for line in lines:
            _check_followed(line)
        for line in lines:
            state.apply(line)
        state.check_end()
    except _Obstacle as found:
        obstacle = str(found)
    return Derived(
        workspace=FileTree(state.files), env=state.env, workdir=state.workdir, obstacle=obstacle
    )


def _instructions(text: str) -> list[str]:
    """Logical lines: comments dropped, continuation lines joined."""
    kept = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\[ \t]*\n", " ", "\n".join(kept) + "\n")
    return [line.strip() for line in joined.splitlines() if line.strip()]


def _check_followed(line: str) -> None:
    word = line.partition(" ")[0].upper()
    if word not in FOLLOWED:
        raise _Obstacle(f"{word} in the Dockerfile")


class _State:
    """The effect of the instructions read so far."""

    def __init__(self, context: FileTree) -> None:
        self.context = context
        self.files: dict[str, File] = {}
        self.env: dict[str, str] = {}
        self.workdir = ""
        self.stages = 0

    def apply(self, line: str) -> None:
        """Take one instruction; raises `_Obstacle` on any that needs a build."""
        word, _, rest = line.partition(" ")
        handlers = {"FROM": self._from, "WORKDIR": self._workdir, "ENV": self._env}
        handlers |= {"COPY": self._copy}
        if "$" in rest or "<<" in rest:
            raise _Obstacle(f"a variable or here-document in {line!r}")
        handlers[word.upper()](rest.strip())

    def check_end(self) -> None:
        """A Dockerfile has one stage."""
        if self.stages != 1:
            raise _Obstacle(f"{self.stages} build stages")

    def _from(self, rest: str) -> None:
        self.stages += 1

    def _workdir(self, rest: str) -> None:
        path = _absolute(rest, self.workdir or "/")
        if path.split("/")[1] in TAKEN or (self.workdir and path != self.workdir):
            raise _Obstacle(f"WORKDIR {rest}")
        self.workdir = path

    def _env(self, rest: str) -> None:
        words = _words(rest)
        if words and "=" not in words[0]:
            words = [f"{words[0]}={rest.split(maxsplit=1)[1]}"] if len(words) > 1 else ["="]
        for word in words:
            key, found, value = word.partition("=")
            if not found or not key:
                raise _Obstacle(f"ENV {rest}")
            self.env[key] = value

    def _copy(self, rest: str) -> None:
        words = _json_words(rest) if rest.startswith("[") else _words(rest)
        if len(words) < 2 or any(word.startswith("--") for word in words):
            raise _Obstacle(f"COPY {rest}")
        *sources, target = words
        inside = self._inside(target)
        into_folder = target.endswith("/") or len(sources) > 1 or inside == ""
        for source in sources:
            self._copy_one(source, inside, into_folder)

    def _inside(self, target: str) -> str:
        """The target relative to the working directory ("" for itself)."""
        workdir = self.workdir
        if not workdir:
            raise _Obstacle("COPY before WORKDIR")
        path = _absolute(target, workdir)
        if path != workdir and not path.startswith(workdir + "/"):
            raise _Obstacle(f"COPY to {target}, outside {workdir}")
        return path[len(workdir) :].strip("/")

    def _copy_one(self, source: str, inside: str, into_folder: bool) -> None:
        name = _absolute(source, "/").strip("/")
        if name in self.context:
            place = f"{inside}/{PurePosixPath(name).name}" if into_folder else inside
            self.files[place.strip("/")] = self.context[name]
            return
        tree = self.context.under(name) if name else self.context
        if not tree:
            raise _Obstacle(f"COPY source {source}, which the folder lacks")
        for path, file in tree.items():
            self.files[f"{inside}/{path}".strip("/")] = file


def _absolute(path: str, base: str) -> str:
    parts: list[str] = []
    for part in (PurePosixPath(base) / path.strip().strip("\"'")).parts[1:]:
        if part == "..":
            parts = parts[:-1]
        else:
            parts.append(part)
    return "/" + "/".join(parts)


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise _Obstacle(f"{rest!r} ({error})") from error


def _json_words(rest: str) -> list[str]:
    try:
        words = json.loads(rest)
    except ValueError as error:
        raise _Obstacle(f"COPY {rest}") from error
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise _Obstacle(f"COPY {rest}")
    return words
