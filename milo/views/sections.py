"""The report as sections of words and tables, from which every rendering is made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from milo.views import text
from milo.views.report import (
    CandidateLine,
    Comparison,
    ConsultationLine,
    Measured,
    Report,
    Spending,
    Step,
)
from milo.views.spending import Coverage, limit_words


class Column(NamedTuple):
    """A table column; where there is no room the highest `rank` leaves first, 0 never does."""

    name: str
    rank: int = 0
    number: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TableOf:
    """Rows of cells under columns; each row has one cell per column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A heading, then lines, then a table, then code; empty parts are left out."""

    title: str
    lines: tuple[str, ...] = ()
    table: TableOf | None = None
    code: tuple[str, ...] = ()
    is_warning: bool = False


def sections_of(report: Report) -> tuple[Section, ...]:
    """All sections in reading order; those with nothing to say are left out."""
    sections = (
        Section(title="Warnings", lines=report.warnings, is_warning=True),
        _result(report, report.test, "Result on the test split"),
        _result(report, report.validation, "Result on the validation split"),
        _path(report),
        _moves(report.consultations),
        _front(report),
        _candidates(report.candidates),
        _spending(report.spending, report.coverage),
        _place(report),
    )
    return tuple(s for s in sections if s.lines or s.table or s.code)


_MEASURES = (
    Column("harness"),
    Column("PR@k %", number=True),
    Column("RR@k %", rank=2, number=True),
    Column("once %", rank=6, number=True),
    Column("k", rank=5, number=True),
    Column("tokens", rank=1, number=True),
    Column("latency", rank=4, number=True),
    Column("valid", rank=3, number=True),
)


def _measures(rows: Iterable[tuple[str, Measured]]) -> TableOf:
    return TableOf(
        columns=_MEASURES,
        rows=tuple(
            (
                f"{label}{m.candidate}",
                text.accuracy(m.reward),
                text.accuracy(m.resolved),
                text.percent(m.solved_once),
                str(m.k),
                text.count(m.tokens),
                text.seconds(m.latency_s),
                _covered(m),
            )
            for label, m in rows
        ),
    )


def _covered(m: Measured) -> str:
    """Valid attempts over attempted ones, or tasks where no attempts are at hand."""
    return str(m.coverage) if m.coverage.attempted else f"{m.tasks}/{m.wanted} tasks"


def _result(report: Report, comparison: Comparison, title: str) -> Section:
    won = comparison.winner
    rows = [("winner ", won)] if won is not None and report.path else []
    rows += [("seed ", seed) for seed in comparison.seeds]
    if not rows:
        return Section(title=title)
    return Section(title=title, lines=_difference(report, comparison), table=_measures(rows))


def _difference(report: Report, comparison: Comparison) -> tuple[str, ...]:
    if comparison.difference is None or not report.path:
        return ()
    best = comparison.best_seed
    tokens, latency = (
        text.DASH if ratio is None else f"× {ratio:.2f}"
        for ratio in (comparison.tokens_ratio, comparison.latency_ratio)
    )
    return (
        f"winner − best seed ({best}): {text.points_apart(comparison.difference)}, "
        f"paired over {text.plural(comparison.paired_tasks, 'task')}",
        f"per attempt {tokens} the best seed's tokens and {latency} its latency",
    )


def _path(report: Report) -> Section:
    lines: list[str] = []
    for number, step in enumerate(report.path, start=1):
        lines += _step_lines(number, step)
    return Section(title="How the winner came about", lines=tuple(lines))


def _step_lines(number: int, step: Step) -> list[str]:
    change = step.change
    origin = " + ".join(step.parents)
    kind = "graft of " if len(step.parents) > 1 else ""
    lines = [f"{number}. {kind}{origin} → {step.candidate}: {change.title} (by {step.mutator})"]
    lines += [f"   diagnosis: {change.diagnosis}"] if change.diagnosis else []
    lines += [f"   hypothesis: {change.hypothesis}"] if change.hypothesis else []
    return [*lines, f"   effect: {_effect(step)}"]


def _effect(step: Step) -> str:
    if step.before is None or step.after is None:
        return "not measured on common search tasks"
    delta = 100 * (step.after.accuracy - step.before.accuracy)
    return (
        f"accuracy {text.percent(step.before.accuracy)} → {text.percent(step.after.accuracy)} % "
        f"({delta:+.1f} points), tokens {text.ratio(step.after.tokens, step.before.tokens)}, "
        f"latency {text.ratio(step.after.latency_s, step.before.latency_s)} on "
        f"{text.plural(step.tasks, 'search task')}; gain {step.gain:.4f}"
    )


def _moves(consultations: tuple[ConsultationLine, ...]) -> Section:
    lines: list[str] = []
    for call in consultations:
        words = f": {call.words}" if call.words else ""
        lines.append(f"{call.island}, round {call.round}, {call.diagnosis}{words}")
        lines += [f"   → {m.words}. Outcome: {m.outcome}." for m in call.moves]
        lines += [f"   ✗ refused: {refused}" for refused in call.refused]
        if not call.moves:
            lines.append("   → no move")
    return Section(title="Orchestrator", lines=tuple(lines))


def _front(report: Report) -> Section:
    if not report.front:
        return Section(title="")
    rows = [("winner " if m.candidate == report.winner else "", m) for m in report.front]
    return Section(title="Validated Pareto front", table=_measures(rows))


def _candidates(candidates: tuple[CandidateLine, ...]) -> Section:
    if not candidates:
        return Section(title="")
    columns = (
        Column("candidate"),
        Column("round", rank=7, number=True),
        Column("from", rank=5),
        Column("edit", rank=2),
        Column("search %", rank=1, number=True),
        Column("val %", rank=3, number=True),
        Column("tokens", rank=6, number=True),
        Column("valid", rank=8, number=True),
        Column("verdict"),
        Column("reason", rank=4),
    )
    return Section(
        title="All candidates",
        table=TableOf(columns=columns, rows=tuple(_candidate_row(c) for c in candidates)),
    )


def _candidate_row(line: CandidateLine) -> tuple[str, ...]:
    return (
        line.candidate,
        str(line.round),
        "+".join(line.parents) or text.DASH,
        line.title,
        text.percent(line.search.accuracy if line.search else None),
        text.accuracy(line.validation),
        text.count(line.search.tokens if line.search else None),
        str(line.coverage),
        str(line.verdict) if line.verdict else "none",
        line.reason,
    )


def _spending(spending: Spending, coverage: Coverage) -> Section:
    plans, free = limit_words(
        spending.budget, spending.spent, rounds=spending.rounds, hours=spending.hours
    )
    share = text.percent(coverage.share)
    return Section(
        title="Budget",
        lines=(
            *([f"limited: {'; '.join(plans)}"] if plans else []),
            *([f"without a limit: {'; '.join(free)}"] if free else []),
            f"coverage: {coverage} attempts valid ({share} %)",
        ),
        table=TableOf(
            columns=(
                Column("role"),
                Column("calls", rank=1, number=True),
                Column("input", rank=4, number=True),
                Column("cached", rank=3, number=True),
                Column("output", rank=2, number=True),
                Column("tokens", number=True),
                Column("price", number=True),
            ),
            rows=tuple(
                (
                    role,
                    str(usage.calls),
                    text.count(usage.uncached_input + usage.cache_write),
                    text.count(usage.cached_input),
                    text.count(usage.output),
                    text.count(usage.tokens),
                    text.dollars(usage.dollars),
                )
                for role, usage in spending.by_role.items()
            ),
        ),
    )


def _place(report: Report) -> Section:
    place = report.place
    lines = [f"run: {place.run}"]
    if report.winner and place.harness:
        lines.append(f"winner's harness: {place.harness}")
    return Section(title="Where it lies", lines=tuple(lines), code=place.commands)
