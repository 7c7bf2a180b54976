"""Progress: the stall count, and the winner on the validation split (SPEC §4.5 and §4, end)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from milo.core.errors import RecordError
from milo.core.fitness import (
    Evaluation,
    Fitness,
    fitness_on,
    missing_tasks,
    paired_difference,
    standard_error,
)
from milo.core.hypervolume import nondominated
from milo.core.plan import WinnerRule


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Rounds without a better validation accuracy, and the best so far."""

    stall: int = 0
    best: float = 0.0

    def after(self, accuracy: float | None) -> Standing:
        """The standing one round later; None where the round validated nothing.

        Only a strictly better accuracy is an improvement.
        """
        if accuracy is not None and accuracy > self.best:
            return Standing(stall=0, best=accuracy)
        return Standing(stall=self.stall + 1, best=self.best)

    def is_stalled(self, patience: int) -> bool:
        """Whether the island escalates to the orchestrator."""
        return self.stall >= patience


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """The winner, the validated Pareto front (by accuracy, best first), and why in words."""

    candidate: str
    front: tuple[str, ...]
    words: str


def choose_winner(
    evaluations: Mapping[str, Evaluation], tasks: Sequence[str], rule: WinnerRule
) -> Choice:
    """The winner among candidates by their validation evaluations; never reads the test split.

    `tasks` is the validation split; candidates not measured on all of it are left out, and
    `RecordError` is raised where none is left. Ties go to the candidate given first.
    """
    complete = {c: e for c, e in evaluations.items() if not missing_tasks(e, tasks)}
    if not complete:
        raise RecordError("no candidate is scored on the whole validation split")
    fitness = {c: fitness_on(e, tasks) for c, e in complete.items()}
    best = min(fitness, key=lambda c: (-fitness[c].accuracy, fitness[c].tokens))
    front = validated_front(fitness)
    if rule is WinnerRule.ACCURACY:
        words = f"{best} has the highest validation accuracy, {fitness[best].accuracy:.3f}"
        return Choice(candidate=best, front=front, words=words)
    near = [c for c in complete if _within_one_se(complete[best], complete[c], tasks)]
    winner = min(near, key=lambda c: (fitness[c].tokens, fitness[c].latency_s))
    words = (
        f"{winner} uses the fewest tokens ({fitness[winner].tokens:.0f} an attempt) of "
        f"{len(near)} candidates within one paired standard error of the best accuracy "
        f"({best}, {fitness[best].accuracy:.3f}); its own is {fitness[winner].accuracy:.3f}"
    )
    return Choice(candidate=winner, front=front, words=words)


def validated_front(fitness: Mapping[str, Fitness]) -> tuple[str, ...]:
    """The Pareto front of validated candidates, the most accurate first."""
    names = list(fitness)
    front = [names[i] for i in nondominated([fitness[name] for name in names])]
    return tuple(sorted(front, key=lambda c: (-fitness[c].accuracy, fitness[c].tokens)))


def _within_one_se(best: Evaluation, other: Evaluation, tasks: Sequence[str]) -> bool:
    """One task gives no standard error: then only a tie is near."""
    gap = paired_difference(best, other, tasks).mean
    differences = [best[task].reward - other[task].reward for task in tasks]
    return gap <= (standard_error(differences) if len(tasks) > 1 else 0.0)
