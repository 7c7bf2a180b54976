"""A harness: a directory of editable source with a runnable entry point (SPEC §1)."""

from __future__ import annotations

import difflib
import fnmatch
import shlex
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from milo.core.errors import HarnessError
from milo.core.packages import Packages
from milo.core.tree import FileTree

MANIFEST_NAME = "harness.toml"
KNOWN_KEYS = frozenset(
    {"name", "entry", "setup", "smoke", "editable", "runtime", "description", "gpus", "packages"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """The parsed `harness.toml`.

    `entry`, `setup` and `smoke` are argument vectors; an argument that names a file of the
    harness is made absolute when it is run, since the working directory is the workspace. `gpus`
    are what an attempt wants of its container host. The first word of a command may also be a
    program of the `packages`.
    """

    name: str
    entry: tuple[str, ...]
    setup: tuple[str, ...] = ()
    smoke: tuple[str, ...] = ()
    editable: tuple[str, ...] = ("**",)
    runtime: str = "python3"
    description: str = ""
    gpus: int = 0
    packages: Packages = field(default_factory=Packages)

    @classmethod
    def parse(cls, text: str, source: str) -> Manifest:
        """Parse the manifest's text; raises `HarnessError` naming `source` and the key."""
        try:
            raw = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise HarnessError(source, "valid TOML", str(error)) from error
        unknown = sorted(set(raw) - KNOWN_KEYS)
        if unknown:
            raise HarnessError(
                f"{source} key {unknown[0]!r}", f"one of {', '.join(sorted(KNOWN_KEYS))}", "it"
            )
        entry = _command(raw, "entry", source)
        if not entry:
            raise HarnessError(f"{source} key 'entry'", "a command", "nothing")
        return cls(
            name=_string(raw, "name", source, required=True),
            entry=entry,
            setup=_command(raw, "setup", source),
            smoke=_command(raw, "smoke", source),
            editable=_globs(raw, source),
            runtime=_string(raw, "runtime", source) or "python3",
            description=_string(raw, "description", source),
            gpus=_count(raw, "gpus", source),
            packages=Packages.parse(raw.get("packages", {}), source),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Harness:
    """A candidate program: an immutable tree and its manifest."""

    tree: FileTree
    manifest: Manifest

    @property
    def digest(self) -> str:
        """The content hash of the whole tree; the identity of the harness."""
        return self.tree.digest

    @classmethod
    def from_tree(cls, tree: FileTree, source: str = "harness") -> Harness:
        """Check a tree's manifest and entry point; raises `HarnessError`."""
        if MANIFEST_NAME not in tree:
            raise HarnessError(source, f"a file {MANIFEST_NAME}", "none")
        where = f"{source}/{MANIFEST_NAME}"
        manifest = Manifest.parse(_as_text(tree[MANIFEST_NAME].data, where), where)
        _check_entry(tree, manifest, source)
        return cls(tree=tree, manifest=manifest)

    @classmethod
    def from_dir(cls, path: Path) -> Harness:
        """Read and check a harness directory; raises `HarnessError` or `UserError`."""
        if not path.is_dir():
            raise HarnessError(str(path), "a harness directory", "no such directory")
        return cls.from_tree(FileTree.from_dir(path), str(path))

    def may_edit(self, path: str) -> bool:
        """Whether the manifest's `editable` globs allow a mutator to change this path."""
        return any(_glob_match(path, glob) for glob in self.manifest.editable)

    def forbidden_edits(self, child: FileTree) -> tuple[str, ...]:
        """Paths that the child changed although the manifest does not allow it."""
        return tuple(p for p in self.tree.changed_paths(child) if not self.may_edit(p))


def patch_between(parent: FileTree, child: FileTree) -> str:
    """A unified diff from parent to child, file by file in path order; binary files named."""
    return "".join(_file_patch(path, parent, child) for path in parent.changed_paths(child))


def _file_patch(path: str, parent: FileTree, child: FileTree) -> str:
    before, after = parent.get(path), child.get(path)
    try:
        old = before.data.decode().splitlines(keepends=True) if before else []
        new = after.data.decode().splitlines(keepends=True) if after else []
    except UnicodeDecodeError:
        return f"Binary files a/{path} and b/{path} differ\n"
    names = (f"a/{path}" if before else "/dev/null", f"b/{path}" if after else "/dev/null")
    lines = list(difflib.unified_diff(old, new, *names))
    return "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
    )


def _glob_match(path: str, glob: str) -> bool:
    return glob in ("**", "*") or fnmatch.fnmatchcase(path, glob.replace("**/", "*"))


def _as_text(data: bytes, source: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        found = f"byte 0x{data[error.start]:02x} at {error.start}"
        raise HarnessError(source, "UTF-8 text", found) from error


def _check_entry(tree: FileTree, manifest: Manifest, source: str) -> None:
    for argument in manifest.entry:
        looks_local = "." in argument and not argument.startswith(("-", "/"))
        if looks_local and argument not in tree:
            raise HarnessError(
                f"{source}/{MANIFEST_NAME} key 'entry'",
                f"the file {argument} in the harness",
                "none",
            )
    if not any(a in tree for a in manifest.entry) and not manifest.entry[0].startswith("/"):
        raise HarnessError(
            f"{source}/{MANIFEST_NAME} key 'entry'",
            "a command that names a file of the harness",
            shlex.join(manifest.entry),
        )


def _string(raw: dict[str, object], key: str, source: str, *, required: bool = False) -> str:
    value = raw.get(key, "")
    if not isinstance(value, str) or (required and not value.strip()):
        raise HarnessError(f"{source} key {key!r}", "a non-empty string", repr(raw.get(key)))
    return value


def _count(raw: dict[str, object], key: str, source: str) -> int:
    value = raw.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise HarnessError(f"{source} key {key!r}", "a whole number of at least 0", repr(value))
    return value


def _command(raw: dict[str, object], key: str, source: str) -> tuple[str, ...]:
    value = raw.get(key, "")
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise HarnessError(
                f"{source} key {key!r}", "a shell-like command", str(error)
            ) from error
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise HarnessError(
        f"{source} key {key!r}", "a command (string or list of strings)", repr(value)
    )


def _globs(raw: dict[str, object], source: str) -> tuple[str, ...]:
    value = raw.get("editable", ["**"])
    if isinstance(value, list) and value and all(isinstance(glob, str) for glob in value):
        return tuple(value)
    raise HarnessError(f"{source} key 'editable'", "a list of globs", repr(value))
