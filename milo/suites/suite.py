"""From a suite plan to a suite: built-in by name, or a folder of Harbor tasks by path."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

from milo.core.errors import ConfigError
from milo.core.plan import SuitePlan
from milo.core.task import Suite, Task
from milo.suites import deskwork
from milo.suites.harbor import load_folder
from milo.suites.splits import split

BUILT_IN = ("deskwork",)
FOLDER_K = 3
"""Attempts per task of a user's own suite (SPEC §2)."""


def load_suite(plan: SuitePlan) -> Suite:
    """The suite that a plan names, with its splits.

    Raises `ConfigError` for an unknown name or family (naming the nearest) and `TaskError` for a
    broken task or too few tasks.
    """
    if plan.path:
        tasks, default_k = load_folder(Path(plan.path)), FOLDER_K
        tasks = _of_families(tasks, plan.families)
    else:
        tasks, default_k = _built_in(plan), deskwork.K
    splits = split(tasks, (plan.search, plan.validation, plan.test), plan.split_seed)
    if plan.k < 0:
        raise ConfigError("suite.k", "at least 0", str(plan.k))
    return Suite(name=plan.name, tasks=tasks, splits=splits, k=plan.k or default_k)


def _built_in(plan: SuitePlan) -> Mapping[str, Task]:
    if plan.name not in BUILT_IN:
        raise _unknown("suite.name", plan.name, BUILT_IN)
    known = {family.NAME: family for family in (*deskwork.FAMILIES, *deskwork.HELD_OUT)}
    for name in plan.families:
        if name not in known:
            raise _unknown("suite.families", name, known)
    chosen = [family for name, family in known.items() if name in plan.families]
    return deskwork.generate(families=chosen or deskwork.FAMILIES)


def _of_families(tasks: Mapping[str, Task], families: Iterable[str]) -> Mapping[str, Task]:
    wanted = set(families)
    known = {task.family for task in tasks.values()}
    for name in sorted(wanted - known):
        raise _unknown("suite.families", name, known)
    return {key: task for key, task in tasks.items() if not wanted or task.family in wanted}


def _unknown(key: str, name: str, known: Iterable[str]) -> ConfigError:
    names = sorted(known)
    near = difflib.get_close_matches(name, names, 1)
    hint = f" (nearest: {near[0]})" if near else ""
    return ConfigError(key, f"one of {', '.join(names)}{hint}", repr(name))
