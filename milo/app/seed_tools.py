"""`milo seed add` and `seed list`: harness directories in the user's data folder, ready to run.

An expert harness, a folder or a git repository becomes a harness directory there; the packages that
its manifest names are installed on this machine; its smoke test is run. A run names it by its name.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from milo.app import recipes
from milo.app.packages import Shelf, install, programs_folder
from milo.app.seed_folder import NAME, added, seeds_folder
from milo.core.errors import ConfigError, HarnessError, MiloError
from milo.core.harness import MANIFEST_NAME, Harness
from milo.core.tree import FileTree
from milo.rollout.local import choose
from milo.rollout.smoke import smoke

OK, FAILED = 0, 1
OWNER = "seed-add"
GIT = "git+"


class Source(NamedTuple):
    """A harness to be added: its name, its files, and what there is to say about it."""

    name: str
    tree: FileTree
    words: str = ""


def add(what: str, name: str = "") -> int:
    """Add an expert harness (NAME or NAME==VERSION), a folder or a git repository; the exit code.

    Raises `MiloError` where it can't be had. 1 where it is there, but fails its smoke test.
    """
    shelf = Shelf(programs_folder())
    source = _source(what, shelf)
    name = name or source.name
    if not NAME.fullmatch(name):
        raise ConfigError("--as", "a name of letters, digits, -, _ and .", repr(name))
    harness = Harness.from_tree(source.tree, name)
    have(harness, shelf)
    folder = place(name, source.tree)
    error = asyncio.run(_smoked(harness, shelf))
    print(f"{name} is in {folder}")
    if source.words:
        print(source.words)
    print(f"Its smoke test fails here: {error}" if error else "Its smoke test passes.")
    print(f"Search from it: milo run seeds={name}")
    return FAILED if error else OK


def listing() -> str:
    """What `milo seed list` prints."""
    rows = []
    for name in recipes.names():
        recipe = recipes.load(name)
        tested = "untested" if recipe.untested else recipe.version or "part of MILO"
        state = "added" if added(name) else "not added"
        rows.append(f"{name:16} {recipe.title}, {tested}: {state}")
        rows += [f"    {line}" for line in recipe.words.splitlines()]
    folder = seeds_folder()
    own = sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST_NAME}"))
    rows += [f"{name:16} your own: added" for name in own if name not in recipes.names()]
    return "\n".join([*rows, f"They are added to {folder}, their packages to {programs_folder()}."])


def have(harness: Harness, shelf: Shelf) -> None:
    """Install what a harness's manifest names, unless it is there."""
    packages = harness.manifest.packages
    if packages and shelf.find(packages) is None:
        install(packages, shelf.place(packages), harness.manifest.name)


def place(name: str, tree: FileTree) -> Path:
    """Write a harness to its folder; raises `HarnessError` where another one lies there."""
    folder = seeds_folder() / name
    if folder.exists():
        if FileTree.from_dir(folder) != tree:
            expected = f"no seed of this name (remove {folder}, or add it --as another)"
            raise HarnessError(f"seed {name}", expected, "a different one")
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".adding-") as scratch:
        tree.write_to(Path(scratch) / name)
        (Path(scratch) / name).rename(folder)
    return folder


def _source(what: str, shelf: Shelf) -> Source:
    if what.startswith(GIT):
        return cloned(what)
    path = Path(what).expanduser()
    if "/" in what or path.is_dir():
        return Source(path.resolve().name, Harness.from_dir(path).tree)
    name, _, version = what.partition("==")
    recipe = recipes.load(name)
    template = Harness.from_tree(recipe.template(version), name)
    have(template, shelf)
    packages = template.manifest.packages
    tree = recipe.harness(version, shelf.find(packages) if packages else None)
    own = name if version in ("", recipe.version) else f"{name}-{version}"
    return Source(own, tree, recipe.words)


def cloned(what: str) -> Source:
    """``git+URL[@REF][#subdirectory=DIR]``, as pip writes it; raises `MiloError`."""
    address, _, fragment = what.removeprefix(GIT).partition("#")
    inside = fragment.removeprefix("subdirectory=")
    start, slash, last = address.rpartition("/")
    last, _, ref = last.partition("@")
    if ref.startswith("-"):
        raise ConfigError(f"seed {what}", "a branch, tag or commit after @", ref)
    url = f"{start}{slash}{last}"
    with tempfile.TemporaryDirectory() as scratch:
        clone = Path(scratch) / "clone"
        shallow = () if ref else ("--depth", "1")
        _git("clone", "--quiet", *shallow, "--", url, str(clone))
        if ref:
            _git("-C", str(clone), "checkout", "--quiet", ref, "--")
        folder = (clone / inside).resolve()
        if not folder.is_relative_to(clone.resolve()):
            raise ConfigError(f"seed {what}", "a folder of the repository", inside)
        tree = Harness.from_dir(folder).tree
    return Source(Path(inside or last).name.removesuffix(".git"), tree)


def _git(*words: str) -> None:
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ("git", *words),
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise MiloError(f"git: {error}") from error
    if done.returncode != 0:
        raise MiloError(f"git {words[0]}: {done.stderr.strip()}")


async def _smoked(harness: Harness, shelf: Shelf) -> str:
    sandbox = choose("auto")
    await sandbox.reap(OWNER)
    return await smoke(sandbox, harness, OWNER, time.time(), find=shelf.find)
