"""The expert harnesses that come with MILO as recipes: how each becomes a harness directory.

`milo/seeds/expert/NAME/` holds the files that are ours, with a manifest that names packages, and a
``recipe.toml`` that says what is copied beside them out of the installed packages. None of their
code is in this repository.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from milo.app.convert import nearest
from milo.core.errors import ConfigError, MiloError
from milo.core.harness import MANIFEST_NAME, Harness
from milo.core.tree import File, FileTree

FOLDER = Path(__file__).parents[1] / "seeds" / "expert"
RECIPE, README = "recipe.toml", "README.md"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """One expert harness.

    `head` is the package whose version may be chosen, `with_head` those that have the same. The
    `sources` are files and folders copied out of the installed packages: place in the harness ->
    glob below their folder. `editable` and `fixed` say what a mutator can change and what not,
    `note` what a person must do. `untested` ones were never run here.
    """

    name: str
    title: str
    editable: str
    fixed: str = ""
    note: str = ""
    head: str = ""
    with_head: tuple[str, ...] = ()
    untested: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> FileTree:
        """What is ours."""
        return FileTree.from_dir(FOLDER / self.name).without(RECIPE)

    @property
    def version(self) -> str:
        """The version that was tested; "" where there is nothing to choose."""
        listed = Harness.from_tree(self.files).manifest.packages
        for package in (*listed.pip, *listed.npm):
            for sign in ("==", "@"):
                if self.head and package.startswith(self.head + sign):
                    return package.removeprefix(self.head + sign)
        return ""

    def template(self, version: str) -> FileTree:
        """Our files for a version ("" for the tested one); raises `ConfigError`."""
        tested = self.version
        if not version or version == tested:
            return self.files
        if not tested:
            found = f"{version} of {self.name}, which has none"
            raise ConfigError(f"seed {self.name}", "no version", found)
        text = self.files.text(MANIFEST_NAME)
        for head in (self.head, *self.with_head):
            for sign in ("==", "@"):
                text = text.replace(f'"{head}{sign}{tested}"', f'"{head}{sign}{version}"')
        return self.files.with_texts({MANIFEST_NAME: text})

    def harness(self, version: str, installed: Path | None) -> FileTree:
        """The whole harness; raises `MiloError` where the installed packages lack a source."""
        template = self.template(version)
        files = dict(template)
        for place, pattern in self.sources.items():
            files |= copied(place, pattern, installed or FOLDER)
        about = f"# {self.title} {version or self.version}".rstrip() + f"\n\n{self.words}\n"
        return FileTree(files).with_texts({README: about})

    @property
    def words(self) -> str:
        """What is editable and what not, in sentences."""
        fixed = f"\nFixed: {self.fixed}." if self.fixed else ""
        note = f"\n{self.note}" if self.note else ""
        return f"Editable: {self.editable}.{fixed}{note}"


def copied(place: str, pattern: str, folder: Path) -> Mapping[str, File]:
    """The files that a pattern names below a folder, by their place in the harness."""
    found = sorted(folder.glob(pattern))
    if not found:
        raise MiloError(f"the packages in {folder} hold no {pattern}")
    if found[0].is_file():
        return {place: File(found[0].read_bytes())}
    return {f"{place}/{path}": file for path, file in FileTree.from_dir(found[0]).items()}


def names() -> tuple[str, ...]:
    """Of all recipes."""
    return tuple(sorted(path.parent.name for path in FOLDER.glob(f"*/{RECIPE}")))


def load(name: str) -> Recipe:
    """A recipe by its name; raises `ConfigError` with the nearest one."""
    if name not in names():
        meant = nearest(name, names())
        hint = f"; did you mean {meant!r}?" if meant else ""
        expected = f"a folder with a {MANIFEST_NAME}, git+URL, or one of {', '.join(names())}"
        raise ConfigError("seed", expected, f"{name!r}{hint}")
    data = tomllib.loads((FOLDER / name / RECIPE).read_text(encoding="utf-8"))
    data["with_head"] = tuple(data.get("with_head", ()))
    return Recipe(name=name, **data)
