"""Draws the end report up: one fold over a run's records and attempts, then plain conclusions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from milo.core.attempt import Outcome, Usage, is_telling
from milo.core.budget import Spend
from milo.core.events import Record
from milo.core.fitness import Interval
from milo.core.population import Population
from milo.views import text
from milo.views.aftermath import consultation_lines
from milo.views.measuring import candidate_lines, compare, measure, path_steps
from milo.views.report import Comparison, Place, Report, Spending
from milo.views.spending import (
    MomentsFold,
    Tally,
    planned_budget,
    spend_by_role,
    split_of_tasks,
    tally,
)
from milo.views.status import was_searched


class RunData(Protocol):
    """What the report reads of a run. Each stream is read once; nothing is kept but sums."""

    def records(self) -> Iterable[Record]:
        """The journal, in order."""
        ...

    def outcomes(self) -> Iterable[Outcome]:
        """Every attempt on record, once."""
        ...

    def patch(self, candidate: str) -> str:
        """The unified diff from the first parent to the candidate; "" where there is none."""
        ...


def build_report(data: RunData, place: Place, notes: Sequence[str] = ()) -> Report:
    """The report of a run, finished or not.

    `notes` are warnings that the records do not hold, such as that of a weak sandbox.
    """
    population, moments = Population(), MomentsFold()
    for record in data.records():
        population.apply(record.event)
        moments.apply(record)
    sums = tally(data.outcomes(), split_of_tasks(population))
    started, won = population.started, population.winner
    winner = won.candidate if won else ""
    validation_tasks = started.validation if started else ()
    validation = compare(population, winner, "validation", validation_tasks, sums)
    test = compare(population, winner, "test", started.test if started else (), sums)
    spending = _spending(population, sums, moments.moments.active_s)
    front = won.front if won else ()
    return Report(
        name=started.name if started else "",
        model=started.model if started else "",
        headline=headline(population, validation, test),
        ended=population.ended.reason if population.ended else "",
        searched=was_searched(population),
        winner=winner,
        rule=won.rule if won else "",
        validation=validation,
        test=test,
        path=path_steps(population, winner, data.patch),
        consultations=consultation_lines(population, validation_tasks),
        candidates=candidate_lines(population, validation_tasks, sums),
        front=tuple(
            m
            for candidate in front
            if (m := measure(population.lineage[candidate], "validation", validation_tasks, sums))
        ),
        spending=spending,
        coverage=sums.total,
        place=place,
        warnings=(*notes, *warnings_of(population, (validation, test), sums, spending)),
    )


def headline(population: Population, validation: Comparison, test: Comparison) -> str:
    """The one sentence that a hurried reader takes away; never success without a search."""
    tried = sum(bool(node.parents) for node in population.lineage)
    if not was_searched(population):
        return "Nothing was searched: no child was ever scored, so there is no result of a search."
    if population.winner is None:
        return f"No winner yet: the run has not come to its end ({tried} children proposed)."
    winner = population.lineage[population.winner.candidate]
    if not winner.parents:
        return (
            f"The search found nothing better than the seed {winner.candidate}: "
            f"{text.plural(tried, 'edit')} tried, none of them won."
        )
    if test.difference is not None:
        verdict = _judgement(test.difference, test.best_seed)
        return f"{winner.candidate} {verdict} on the test split."
    if validation.difference is not None:
        verdict = _judgement(validation.difference, validation.best_seed)
        return (
            f"{winner.candidate} {verdict} on the validation split, which also chose it; the test "
            "split is not scored."
        )
    return f"{winner.candidate} won, but it can't be compared with any seed."


def _judgement(difference: Interval, best_seed: str) -> str:
    against = f"the best seed {best_seed} ({text.points_apart(difference)})"
    if difference.low > 0:
        return f"is better than {against}"
    if difference.high < 0:
        return f"is worse than {against}"
    return f"is not shown to differ from {against}, an interval that includes zero,"


def warnings_of(
    population: Population, comparisons: Sequence[Comparison], sums: Tally, spending: Spending
) -> tuple[str, ...]:
    """What to doubt, in plain words."""
    found = []
    if not was_searched(population):
        found.append(
            "Nothing was searched: no child was ever scored. The figures below are the seeds' "
            "own and say nothing about the search."
        )
    if population.ended is None:
        found.append("The run has not ended; this report is of what is on record so far.")
    started = population.started
    for comparison in comparisons if population.winner is not None else ():
        if started is not None and (wanted := len(getattr(started, comparison.split))):
            found += _doubts(comparison, wanted)
    return (*found, *_attempt_doubts(sums), *_price_doubts(spending.by_role))


def _doubts(comparison: Comparison, wanted: int) -> list[str]:
    split, won = comparison.split, comparison.winner
    if won is None:
        return [f"The {split} split ({wanted} tasks) is not scored for the winner."]
    found = []
    if won.tasks < wanted:
        found.append(
            f"The winner's {split} figures rest on {won.tasks} of {wanted} tasks; the others "
            "have no valid attempt."
        )
    if not comparison.seeds:
        found.append(f"No seed is scored on the {split} split: nothing to compare with there.")
    elif comparison.paired_tasks == 1:
        found.append(f"One {split} task alone gives no interval.")
    return found


def _attempt_doubts(sums: Tally) -> list[str]:
    found = []
    missing = sums.total.attempted - sums.total.valid
    if missing:
        faults = ", ".join(f"{number} {fault}" for fault, number in sums.faults.items())
        found.append(
            f"{missing} of {sums.total.attempted} attempts are missing through faults that are "
            f"not the harness's ({faults}); they count nowhere."
        )
    telling = _counted({f: n for f, n in sums.flags.items() if is_telling(f)})
    vain = _counted({f: n for f, n in sums.flags.items() if not is_telling(f)})
    if telling:
        found.append(f"Attempts with signs of reward hacking score 0: {telling}.")
    if vain:
        found.append(
            f"Some attempts reached in vain for what is not theirs, or spoke of it: {vain}. This "
            "changed no score; milo trace shows what they did."
        )
    return found


def _counted(flags: Mapping[str, int]) -> str:
    return ", ".join(f"{flag} × {number}" for flag, number in flags.items())


def _price_doubts(by_role: Mapping[str, Usage]) -> list[str]:
    unknown = [role for role, usage in by_role.items() if usage.dollars is None]
    estimated = [role for role, usage in by_role.items() if usage.estimated]
    found = []
    if unknown:
        found.append(f"The price is unknown for: {', '.join(unknown)}; dollars are not complete.")
    if estimated:
        found.append(f"Tokens are partly estimated for: {', '.join(estimated)}.")
    return found


def _spending(population: Population, sums: Tally, active_s: float) -> Spending:
    by_role = spend_by_role(population, sums.usage)
    total = sum((Spend.of(usage) for usage in by_role.values()), Spend())
    rounds = [state.round for state in population.topology.islands.values()]
    return Spending(
        budget=planned_budget(population.plan),
        spent=total + Spend(attempts=sums.total.attempted),
        rounds=max(0, *rounds, 0),
        hours=active_s / 3600,
        by_role=by_role,
    )
