"""From a suite plan to a suite: built-in by name, or a folder of tasks by path."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from milo.core.errors import ConfigError, TaskError
from milo.core.judge import JUDGE_FILE
from milo.core.plan import SuitePlan
from milo.core.task import Network, Splits, Suite, Task
from milo.suites import deskwork
from milo.suites.folder import scan_folder
from milo.suites.quarantine import cleared, read
from milo.suites.splits import split

BUILT_IN = ("arena", "deskwork")
FOLDER_K = 3
"""Attempts per task of a user's own suite (SPEC §2)."""


def load_suite(plan: SuitePlan) -> Suite:
    """The suite that a plan names, with its splits.

    Raises `ConfigError` for an unknown name or family (naming the nearest) and `TaskError` for a
    broken task or too few tasks.
    """
    if plan.k < 0:
        raise ConfigError("suite.k", "at least 0", str(plan.k))
    if plan.path:
        return _of_folder(plan)
    tasks = _within(plan.seconds, built_in_tasks(plan.name, plan.families))
    if plan.name == "arena":
        _check_arena_seconds(plan.seconds)
    return Suite(name=plan.name, tasks=tasks, splits=_splits(plan, tasks), k=plan.k or deskwork.K)


def _within(seconds: float, tasks: Mapping[str, Task]) -> Mapping[str, Task]:
    """The tasks with these seconds for each attempt, and for each step; 0 leaves them alone."""
    if seconds == 0:
        return tasks
    return {
        name: replace(
            task,
            limits=replace(task.limits, agent_timeout_s=seconds),
            steps=tuple(replace(step, agent_timeout_s=seconds) for step in task.steps),
        )
        for name, task in tasks.items()
    }


def _judged_by(model: str, tasks: Mapping[str, Task]) -> Mapping[str, Task]:
    """The tasks, of which those that a model judges name it: another judge measures otherwise."""
    return {
        name: replace(task, judging=replace(task.judging, judge=model))
        if JUDGE_FILE in task.tests
        else task
        for name, task in tasks.items()
    }


def _of_folder(plan: SuitePlan) -> Suite:
    """The tasks of a folder that are taken into a split; the others are never read in full."""
    folder = Path(plan.path)
    found = cleared(scan_folder(folder, Network(plan.network)), read(folder))
    for name, error in found.broken.items():
        hint = f"; `milo suite check {folder}` names every broken task and leaves them out"
        raise TaskError(error.thing, error.expected, f"{error.found} (task {name}{hint})")
    tasks = _of_families(found.tasks, plan.families)
    wanted = plan.search + plan.validation + plan.test
    if wanted > len(tasks) and found.left_out:
        words = f"{len(tasks)} tasks, {len(found.left_out)} more being in quarantine"
        raise TaskError(f"suite {folder}", f"at least {wanted} tasks", words)
    splits = _splits(plan, tasks)
    taken = (*splits.search, *splits.validation, *splits.test)
    tasks = _within(plan.seconds, {name: tasks[name] for name in sorted(taken)})
    return Suite(
        name=plan.name,
        tasks=_judged_by(plan.judge, tasks),
        splits=splits,
        k=plan.k or FOLDER_K,
        left_out=found.left_out,
    )


def _splits(plan: SuitePlan, tasks: Mapping[str, Task]) -> Splits:
    return split(tasks, (plan.search, plan.validation, plan.test), plan.split_seed)


def built_in_tasks(name: str, families: Sequence[str] = ()) -> Mapping[str, Task]:
    """The tasks of a built-in suite, of all its usual families or these; raises `ConfigError`."""
    if name not in BUILT_IN:
        raise _unknown("suite.name", name, BUILT_IN)
    return _arena(families) if name == "arena" else _deskwork(families)


def _deskwork(families: Sequence[str]) -> Mapping[str, Task]:
    known = {family.NAME: family for family in (*deskwork.FAMILIES, *deskwork.HELD_OUT)}
    for name in families:
        if name not in known:
            raise _unknown("suite.families", name, known)
    chosen = [family for name, family in known.items() if name in families]
    return deskwork.generate(families=chosen or deskwork.FAMILIES)


def _arena(families: Sequence[str]) -> Mapping[str, Task]:
    """Open problems; imported here, since its optimizers load scipy."""
    from milo.suites.arena import tasks as arena

    for name in families:
        if name not in arena.NAMES:
            raise _unknown("suite.families", name, arena.NAMES)
    return arena.generate(families)


def _check_arena_seconds(seconds: float) -> None:
    from milo.suites.arena.tasks import LEAST_SECONDS

    if 0 < seconds < LEAST_SECONDS:
        expected = f"at least {LEAST_SECONDS:g} for optimizers, which keep 2 s for ending, or 0"
        raise ConfigError("suite.seconds", expected, f"{seconds:g}")


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
