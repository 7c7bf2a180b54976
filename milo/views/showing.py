"""What `milo show`, `milo diff` and `milo trace` say, as data and as sections to print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from milo.core.attempt import is_telling
from milo.core.evidence import Trace
from milo.core.fitness import Evaluation, Fitness, Interval, fitness_on, paired_difference
from milo.core.lineage import Node
from milo.core.population import Population
from milo.views import text
from milo.views.dialogue import dialogue_of
from milo.views.dossier import AttemptLine, Dossier
from milo.views.sections import Column, Section, TableOf

SPLITS = ("search", "validation", "test")
SHOWN = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskLine:
    """One task: mean reward over `n` attempts, and the first parent's (None where unscored)."""

    task: str
    split: str
    n: int
    reward: float
    before: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CandidateView:
    """A candidate in full; `path` leads from the seed to it, `fitness` is by split over the tasks
    that it has. `sent_back` says why proposals in its place were refused, held-out tasks named."""

    candidate: str
    island: str
    round: int
    parents: tuple[str, ...]
    path: tuple[str, ...]
    mutator: str
    verdict: str
    reason: str
    gain: float
    support: float
    fitness: dict[str, Fitness]
    tasks: tuple[TaskLine, ...]
    dossier: Dossier
    sent_back: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One of two harnesses to compare. A directory has no `node`; `model` and `tasks` (content
    hashes by name) are those of its run, as far as they are on record."""

    name: str
    node: Node | None = None
    model: str = ""
    tasks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """`b` against `a`: the patch, and by split b − a paired over the tasks that both have;
    `notes` say what to doubt about the scores."""

    a: str
    b: str
    paired: dict[str, Interval]
    tasks: dict[str, int]
    patch: str
    notes: tuple[str, ...] = ()


def candidate_view(population: Population, dossier: Dossier) -> CandidateView:
    """Put a candidate's place in the lineage beside its dossier."""
    node = population.lineage[dossier.candidate]
    parent = population.lineage[node.parents[0]] if node.parents else None
    return CandidateView(
        candidate=node.candidate,
        island=node.island,
        round=node.round,
        parents=node.parents,
        path=population.lineage.path_from_seed(node.candidate),
        mutator=node.mutator,
        verdict=str(node.verdict) if node.verdict else "pending",
        reason=node.reason,
        gain=node.gain,
        support=node.support,
        fitness={s: fitness_on(e, tuple(e)) for s in SPLITS if (e := node.evaluation(s))},
        tasks=tuple(_task_lines(node, parent)),
        dossier=dossier,
        sent_back=node.sent_back,
    )


def _task_lines(node: Node, parent: Node | None) -> Iterator[TaskLine]:
    for split in SPLITS:
        before: Evaluation = parent.evaluation(split) if parent else {}
        for task, score in sorted(node.evaluation(split).items()):
            former = before[task].reward if task in before else None
            yield TaskLine(task=task, split=split, n=score.n, reward=score.reward, before=former)


def candidate_sections(view: CandidateView) -> tuple[Section, ...]:
    """A candidate for readers."""
    change = view.dossier.change
    words = [
        f"{view.verdict}: {view.reason}" if view.reason else view.verdict,
        f"island {view.island}, round {view.round}, by {view.mutator or 'nobody: a seed'}",
        f"from the seed: {' → '.join(view.path)}",
    ]
    words += [f"parents: {' and '.join(view.parents)}"] if len(view.parents) > 1 else []
    words += [f"gain {view.gain:.5f} with support {view.support:.2f}"] if view.gain else []
    words += [f"{split}: {text.fitness(fitness)}" for split, fitness in view.fitness.items()]
    why = [f"diagnosis: {change.diagnosis}"] if change.diagnosis else []
    why += [f"hypothesis: {change.hypothesis}"] if change.hypothesis else []
    patches = tuple(
        Section(title=f"Patch from {p.parent}", code=tuple(p.patch.splitlines()))
        for p in view.dossier.patches
        if p.patch
    )
    title = f"{view.candidate}: {change.title}"
    return (
        Section(title=title, lines=tuple(words)),
        *([Section(title="Why", lines=tuple(why))] if why else []),
        *_refusals(view.sent_back),
        *_signs(view.dossier.attempts),
        Section(title="Tasks", table=_task_table(view.tasks)),
        *patches,
    )


def _refusals(sent_back: tuple[str, ...]) -> tuple[Section, ...]:
    """Why proposals were sent back before any attempt was paid, the generality check's hits too."""
    if not sent_back:
        return ()
    lines = tuple(f"proposal {number}: {why}" for number, why in enumerate(sent_back, start=1))
    return (Section(title="Sent back", lines=lines),)


def _signs(attempts: tuple[AttemptLine, ...]) -> tuple[Section, ...]:
    """Which attempts bear signs of reward hacking."""
    by_flag: dict[str, list[str]] = {}
    for attempt in attempts:
        for flag in attempt.flags:
            by_flag.setdefault(flag, []).append(attempt.key)
    if not by_flag:
        return ()
    lines = tuple(
        f"{flag}{' (reward 0)' if is_telling(flag) else ' (in vain)'}: {', '.join(keys[:SHOWN])}"
        f"{f' and {len(keys) - SHOWN} more' if len(keys) > SHOWN else ''}"
        for flag, keys in sorted(by_flag.items())
    )
    return (Section(title="Signs of reward hacking", lines=lines, is_warning=True),)


def _task_table(lines: tuple[TaskLine, ...]) -> TableOf:
    return TableOf(
        columns=(
            Column("task"),
            Column("split", rank=3),
            Column("k", rank=4, number=True),
            Column("reward", number=True),
            Column("parent", rank=1, number=True),
            Column("change", rank=2, number=True),
        ),
        rows=tuple(
            (
                line.task,
                line.split,
                str(line.n),
                f"{line.reward:.2f}",
                text.DASH if line.before is None else f"{line.before:.2f}",
                text.DASH if line.before is None else f"{line.reward - line.before:+.2f}",
            )
            for line in lines
        ),
    )


def difference_of(a: Side, b: Side, patch: str) -> Difference:
    """Compare two harnesses; scores where both have a node, over the tasks that are the same."""
    paired: dict[str, Interval] = {}
    counted: dict[str, int] = {}
    others: set[str] = set()
    for split in SPLITS if a.node and b.node else ():
        assert a.node is not None and b.node is not None
        left, right = a.node.evaluation(split), b.node.evaluation(split)
        common = left.keys() & right.keys()
        changed = {task for task in common if _differ(a.tasks.get(task), b.tasks.get(task))}
        others |= changed
        if both := sorted(common - changed):
            paired[split] = paired_difference(right, left, both)
            counted[split] = len(both)
    notes = _doubts(a, b, len(others)) if a.node and b.node else ()
    return Difference(a=a.name, b=b.name, paired=paired, tasks=counted, patch=patch, notes=notes)


def _differ(one: str | None, other: str | None) -> bool:
    """Whether two contents are known to differ; earlier versions recorded none."""
    return one is not None and other is not None and one != other


def _doubts(a: Side, b: Side, others: int) -> tuple[str, ...]:
    models = (f"the models differ: {b.model} against {a.model}",) if a.model != b.model else ()
    words = f"{text.plural(others, 'task')} of the same name with other content: left out"
    return (*models, *((words,) if others else ()))


def difference_sections(found: Difference) -> tuple[Section, ...]:
    """A difference for readers."""
    lines = tuple(
        f"{split}: {text.points_apart(interval)}, paired over "
        f"{text.plural(found.tasks[split], 'task')}"
        for split, interval in found.paired.items()
    )
    nothing = ("the harnesses are the same",)
    patch = tuple(found.patch.splitlines()) or nothing
    return (
        *([Section(title="Warnings", lines=found.notes, is_warning=True)] if found.notes else []),
        Section(title=f"{found.b} against {found.a}", lines=lines or ("no common task",)),
        Section(title="Patch", code=patch),
    )


def attempts_table(candidate: str, attempts: tuple[AttemptLine, ...]) -> Section:
    """The attempts of a candidate, by the names that `milo trace` takes."""
    columns = (
        Column("attempt"),
        Column("split", rank=4),
        Column("status", rank=1),
        Column("reward", number=True),
        Column("tokens", rank=3, number=True),
        Column("time", rank=2, number=True),
    )
    rows = tuple(
        (
            f"{candidate}:{a.key}",
            a.split,
            ", ".join((a.status, *a.flags)),
            text.DASH if a.reward is None else f"{a.reward:.2f}",
            text.count(a.tokens),
            text.seconds(a.latency_s),
        )
        for a in attempts
    )
    return Section(title=f"Attempts of {candidate}", table=TableOf(columns=columns, rows=rows))


def sessions_section(scopes: tuple[str, ...]) -> Section:
    """The model sessions that belong to no attempt, by the names that `milo trace` takes."""
    none = ("none: no mutator and no orchestrator of this run has called a model",)
    return Section(title="Sessions of mutators and the orchestrator", lines=scopes or none)


def trace_text(name: str, attempt: AttemptLine | None, trace: Trace) -> str:
    """A trace as plain text to page through; its words are made harmless line by line."""
    lines = [f"# {name}"]
    if attempt is not None:
        reward = text.DASH if attempt.reward is None else f"{attempt.reward:.2f}"
        spent = f"{attempt.tokens} tokens in {text.plural(attempt.calls, 'call')}"
        lines += [f"{attempt.status}, reward {reward}, {spent}, {text.seconds(attempt.latency_s)}"]
        lines += [attempt.detail] if attempt.detail else []
    for number, exchange in enumerate(trace.exchanges, start=1):
        lines += ["", f"## model call {number}: {text.seconds(exchange.seconds)}"]
        for who, words in dialogue_of(exchange):
            lines += ["", f"--- {who}", *words.splitlines()]
    blocks = {
        "standard output": trace.stdout,
        "standard error": trace.stderr,
        **{f"file {path}": content for path, content in trace.changed.items()},
        "verifier's report": trace.report,
        "verifier's output (for the run's owner only)": trace.verifier_output,
    }
    for title, content in blocks.items():
        lines += ["", f"## {title}", *content.splitlines()] if content else []
    return "\n".join(_harmless(line) for line in lines)


def _harmless(line: str) -> str:
    """Without control characters: an escape sequence could rewrite what the user sees."""
    return "".join(c for c in line.expandtabs() if c.isprintable())
