"""Curriculum: a new search set of tasks that few harnesses solve and most fail (SPEC §3.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from milo.core.fitness import TaskScore
from milo.core.lineage import Node
from milo.core.moves import Curriculum
from milo.core.ports import PopulationView

MIN_TASKS = 4
MIN_SUCCESSES = 2
MAX_MEAN = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Regret:
    """One task over the admitted harnesses that measured it.

    `regret` is max p_x − mean p_x; `successes` counts attempts with a reward (at least).
    """

    task: str
    regret: float
    mean: float
    successes: int

    @property
    def qualifies(self) -> bool:
        """Solved by few and failed by most, and not by luck alone."""
        return self.regret > 0 and self.successes >= MIN_SUCCESSES and self.mean < MAX_MEAN


def admitted(view: PopulationView) -> tuple[Node, ...]:
    """The admitted harnesses of all islands, each once."""
    members = dict.fromkeys(m for s in view.topology.islands.values() for m in s.members)
    return tuple(view.lineage[member] for member in members)


def regrets(view: PopulationView) -> tuple[Regret, ...]:
    """Regret of every measured task of the search split, the highest first."""
    nodes = admitted(view)
    found = []
    for task in view.search_split:
        scores = [n.evaluation("search")[task] for n in nodes if task in n.evaluation("search")]
        if scores:
            found.append(_regret(task, scores))
    return tuple(sorted(found, key=lambda r: -r.regret))


def propose_curriculum(view: PopulationView, *, minimum: int = MIN_TASKS) -> Curriculum | None:
    """The next search set, at most as large as the current one; None where there is none to have.

    Where fewer than `minimum` tasks qualify, or the same set was used before, the present set has
    told what it can: then it is the whole search split again, with the tasks that nobody has
    solved. None if that is in use, or if the re-scoring can't be paid.
    """
    size = max((len(s.search) for s in view.topology.islands.values()), default=0)
    chosen = {r.task for r in [r for r in regrets(view) if r.qualifies][:size]}
    tasks = tuple(task for task in view.search_split if task in chosen)
    if len(tasks) < minimum or is_used(view, tasks):
        tasks = view.search_split
    if is_used(view, tasks) or not is_affordable(view, tasks):
        return None
    return Curriculum(tasks=tasks, epoch=next_epoch(view))


def rescoring_attempts(view: PopulationView, tasks: Sequence[str]) -> int:
    """Attempts that scoring all admitted harnesses on these tasks costs, kept ones reused."""
    lacking = (sum(t not in n.evaluation("search") for t in tasks) for n in admitted(view))
    return view.k * sum(lacking)


def is_affordable(view: PopulationView, tasks: Sequence[str]) -> bool:
    """Whether the budget can pay the re-scoring and one child on the new set after it."""
    needed = rescoring_attempts(view, tasks) + view.k * len(tasks)
    return view.attempts_left is None or needed <= view.attempts_left


def next_epoch(view: PopulationView) -> int:
    """The number of the next search set, after those applied and those on record."""
    applied = [state.epoch for state in view.topology.islands.values()]
    proposed = [move.epoch for move in _curricula(view)]
    return max([0, *applied, *proposed]) + 1


def is_used(view: PopulationView, tasks: Sequence[str]) -> bool:
    """Whether a set may not be had again: any that was, but for the whole split, which only must
    not be the present one."""
    if frozenset(tasks) == frozenset(view.search_split):
        states = view.topology.islands.values()
        return any(frozenset(s.search) == frozenset(tasks) for s in states if not s.closed)
    return frozenset(tasks) in used_sets(view)


def used_sets(view: PopulationView) -> frozenset[frozenset[str]]:
    """Search sets that were in use or are on record."""
    current = [frozenset(state.search) for state in view.topology.islands.values()]
    return frozenset([*current, *(frozenset(move.tasks) for move in _curricula(view))])


def _curricula(view: PopulationView) -> tuple[Curriculum, ...]:
    moves = [move for answer in view.past for move in answer.moves]
    moves += [move for _, _, move in view.topology.moves]
    return tuple(move for move in moves if isinstance(move, Curriculum))


def _regret(task: str, scores: Sequence[TaskScore]) -> Regret:
    rates = [score.reward for score in scores]
    mean = math.fsum(rates) / len(rates)
    # reward·n is at most the number of attempts with a reward, so rounding it up is safe.
    successes = sum(max(s.resolved, math.ceil(s.reward * s.n - 1e-9)) for s in scores)
    return Regret(task=task, regret=max(rates) - mean, mean=mean, successes=successes)
