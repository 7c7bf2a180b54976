"""The seed harnesses of the arena, put together from the files of this package."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType

from milo.core.tree import FileTree

SCHEDULES = ("linear", "smooth", "multiresolution", "basin", "annealing", "subgradient")
PACKAGE = "milo.suites.arena"
MANIFEST = """name = "{name}"
description = "{description}"
entry = "python3 main.py"
smoke = "python3 main.py --smoke"
editable = {editable}
runtime = "python3 numpy scipy"
"""


def package_files(*folders: str) -> Mapping[str, str]:
    """The sources of sub-packages at the paths by which they import each other."""
    texts = {f"{path}/__init__.py": "" for path in ("milo", "milo/suites", "milo/suites/arena")}
    for folder in folders:
        for file in (resources.files(PACKAGE) / folder).iterdir():
            if file.name.endswith(".py"):
                texts[f"milo/suites/arena/{folder}/{file.name}"] = file.read_text(encoding="utf-8")
    return texts


def text_of(*path: str) -> str:
    """The text of one file of this package."""
    return resources.files(PACKAGE).joinpath(*path).read_text(encoding="utf-8")


def optimizer(schedule: str) -> FileTree:
    """The optimizer program with this schedule.py, without a manifest."""
    return FileTree.of_texts(
        {
            **package_files("problems", "optimizer"),
            "main.py": text_of("harness", "main.py"),
            "schedule.py": schedule,
        }
    )


def seed_trees(*, with_model: bool) -> Mapping[str, FileTree]:
    """The seeds by name; the one that needs a model only where there is one."""
    trees = {name: _optimizer_seed(name) for name in SCHEDULES}
    if with_model:
        manifest = MANIFEST.format(
            name="reviser",
            description="A model rewrites the schedule of the task's optimizer.",
            editable='["main.py"]',
        )
        texts = {"harness.toml": manifest, "main.py": text_of("harness", "reviser", "main.py")}
        trees["reviser"] = FileTree.of_texts(texts)
    return MappingProxyType(trees)


def _optimizer_seed(name: str) -> FileTree:
    schedule = text_of("harness", "schedules", f"{name}.py")
    description = schedule.split('"""')[1].split(";")[0].strip().rstrip(".") + "."
    manifest = MANIFEST.format(
        name=name, description=description, editable='["schedule.py", "milo/**"]'
    )
    return optimizer(schedule).with_texts({"harness.toml": manifest})
