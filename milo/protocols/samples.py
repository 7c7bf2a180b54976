"""Which harnesses and tasks a leaderboard compares: methods with their runs, pooled seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milo.core.fitness import TaskScore, score_task
from milo.protocols.entries import Entry, Scored

Array = NDArray[np.float64]
TaskKey = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One row in the making: a table of task scores for each of its runs.

    `entries` are the runs, in the same order; none for a seed.
    """

    name: str
    tables: tuple[Mapping[TaskKey, TaskScore], ...]
    harnesses: tuple[Scored, ...]
    entries: tuple[Entry, ...] = ()

    def values(self, tasks: Sequence[TaskKey], of: Callable[[TaskScore], float]) -> Array:
        """One figure of every run and task, shape (runs, tasks)."""
        return np.array([[of(table[task]) for task in tasks] for table in self.tables], dtype=float)


def reward(score: TaskScore) -> float:
    """Mean reward on a task."""
    return score.reward


def resolved(score: TaskScore) -> float:
    """Share of a task's attempts that resolved it."""
    return score.resolved / score.n


def groups(entries: Sequence[Entry], each: bool) -> dict[str, list[Entry]]:
    """Entries by the name of their row."""
    methods: dict[str, list[Entry]] = {}
    for entry in entries:
        methods.setdefault(entry.method, []).append(entry)
    if not each:
        return methods
    names = _short_names([entry.run for entry in entries])
    return {f"{entry.method} ({name})": [entry] for entry, name in zip(entries, names, strict=True)}


def _short_names(paths: Sequence[str]) -> list[str]:
    """The last part of each path; the whole path where last parts repeat."""
    last = [path.rstrip("/").rpartition("/")[2] for path in paths]
    return last if len(set(last)) == len(last) else list(paths)


def pooled_seeds(entries: Sequence[Entry]) -> dict[str, Scored]:
    """Seeds by name, each with the attempts of all runs on it; those unscored are left out."""
    pooled: dict[str, Scored] = {}
    for entry in entries:
        for seed in entry.seeds:
            if seed.measured:
                known = pooled.get(seed.harness)
                pooled[seed.harness] = seed if known is None else _merged(known, seed)
    names = [seed.name for seed in pooled.values()]
    return {
        f"seed {s.name}" if names.count(s.name) == 1 else f"seed {s.name} {s.harness[:8]}": s
        for s in pooled.values()
    }


def _merged(first: Scored, second: Scored) -> Scored:
    outcomes = dict(first.outcomes)
    for task, more in second.outcomes.items():
        outcomes[task] = (*outcomes.get(task, ()), *more)
    return replace(first, outcomes=outcomes)


def shared(scored: Sequence[Scored]) -> list[TaskKey]:
    """The tasks (with their content) that all of them have a valid attempt on, sorted."""
    return sorted(frozenset.intersection(*(s.measured for s in scored))) if scored else []


def sample_of(name: str, entries: Sequence[Entry], tasks: Sequence[TaskKey]) -> Sample:
    """The row of a method's runs."""
    return Sample(
        name=name,
        tables=tuple(_table(entry.winner, tasks) for entry in entries),
        harnesses=tuple(entry.winner for entry in entries),
        entries=tuple(entries),
    )


def seed_sample(name: str, seed: Scored, tasks: Sequence[TaskKey]) -> Sample:
    """The row of a seed."""
    return Sample(name=name, tables=(_table(seed, tasks),), harnesses=(seed,))


def _table(scored: Scored, tasks: Sequence[TaskKey]) -> dict[TaskKey, TaskScore]:
    scores = {task: score_task(scored.outcomes[task]) for task in tasks}
    return {task: score for task, score in scores.items() if score is not None}
