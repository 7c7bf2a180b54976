"""Disjoint splits of the sizes asked for, stratified by family and fixed by a seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence

from milo.core.errors import TaskError
from milo.core.task import Splits, Task

NAMES = ("search", "validation", "test")


def split(tasks: Mapping[str, Task], sizes: Sequence[int], seed: int) -> Splits:
    """Search, validation and test ids of these three sizes; raises `TaskError` if tasks lack.

    Every split holds each family in proportion to its number of tasks, up to rounding. The result
    depends on the ids, families, sizes and seed only, not on the order of `tasks`.
    """
    needed = dict(zip(NAMES, sizes, strict=True))
    for name, size in needed.items():
        if size < 0:
            raise TaskError(f"split {name}", "a size of at least 0", str(size))
    if sum(sizes) > len(tasks):
        parts = ", ".join(f"suite.{name}={size}" for name, size in needed.items())
        raise TaskError("suite", f"at least {sum(sizes)} tasks ({parts})", f"{len(tasks)} tasks")
    deck = _interleaved(_strata(tasks, seed), seed)
    bounds = [0, sizes[0], sizes[0] + sizes[1], sum(sizes)]
    parts_of = [tuple(sorted(deck[a:b])) for a, b in itertools.pairwise(bounds)]
    return Splits(search=parts_of[0], validation=parts_of[1], test=parts_of[2])


def _strata(tasks: Mapping[str, Task], seed: int) -> dict[str, list[str]]:
    """Shuffled ids by family."""
    strata: dict[str, list[str]] = {}
    for task_id in sorted(tasks):
        strata.setdefault(tasks[task_id].family, []).append(task_id)
    for family, ids in strata.items():
        random.Random(f"{seed}/{family}").shuffle(ids)
    return dict(sorted(strata.items()))


def _interleaved(strata: Mapping[str, list[str]], seed: int) -> list[str]:
    """One order in which any run of neighbours holds the families in proportion.

    The i-th of a family's n tasks stands at (i + offset) / n, with an offset per family that
    depends on the seed, so that rounding favours no family.
    """
    places = []
    for family, ids in strata.items():
        offset = random.Random(f"{seed}/offset/{family}").random()
        places += [((i + offset) / len(ids), family, task_id) for i, task_id in enumerate(ids)]
    return [task_id for _, _, task_id in sorted(places)]
