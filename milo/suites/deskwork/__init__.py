"""The built-in suite: small tasks a person would recognise, generated, in Harbor's format.

A family is a module with `NAME` and `make(index, rng)`. The default is one attempt per task
(`K` = 1): with a local model at a fixed temperature more tasks say more than more attempts.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from milo.core.task import Task
from milo.suites.deskwork import extract, logs, repair, shell, sums, tables
from milo.suites.deskwork.family import Family
from milo.suites.harbor import write_task

FAMILIES: tuple[Family, ...] = (shell, extract, sums, logs, repair)
"""What the suite is made of."""
HELD_OUT: tuple[Family, ...] = (tables,)
"""Families that are generated only where they are asked for by name (`suite.families`): nothing
was developed on them."""
COUNT = 100
"""Tasks per family."""
K = 1
"""Attempts per task by default."""


def generate(
    seed: int = 0, families: Sequence[Family] = FAMILIES, count: int = COUNT
) -> Mapping[str, Task]:
    """The tasks by id, `count` of each family; the same seed gives the same tasks."""
    tasks = (
        family.make(index, random.Random(f"{seed}/{family.NAME}-{index}"))
        for family in families
        for index in range(count)
    )
    return MappingProxyType({task.id: task for task in tasks})


def write_harbor(
    folder: Path, seed: int = 0, families: Sequence[Family] = FAMILIES, count: int = COUNT
) -> None:
    """Write the tasks as Harbor task folders below `folder`; `harbor.load_folder` reads them."""
    for task in generate(seed, families, count).values():
        write_task(folder / task.id, task)
