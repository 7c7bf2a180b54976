"""What a model-driven mutator is shown: the brief as files, and as one bounded prompt.

Bounds are in characters. Policy where something doesn't fit: the task of the round, the rejected
edits' titles and the request always stand; source comes whole, largest file cut last; failing
attempts come before passing ones, one per task before a second of the same; of the lineage the
path from the seed is kept in full, and the oldest edges without a change in score go first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from milo.core.events import Verdict
from milo.core.evidence import Brief, Edge, Evidence, ParentView

TASK = """You improve a harness: a small program that drives a language model to do tasks in a
folder. The model is frozen; only the harness changes. Diagnose why attempts fail, form one
falsifiable hypothesis, and make one edit, from a local fix to a rewrite of the control flow.
Accuracy counts most; tokens and seconds per attempt count too."""

CONSTRAINTS = """- The harness runs with the task's folder as working directory, reads the task from
  the file that MILO_TASK names, and calls the model at OPENAI_BASE_URL with OPENAI_API_KEY and
  MILO_MODEL. MILO_DEADLINE is the end in Unix seconds. Standard library only.
- No task-specific logic: no task names, no wording of tasks, no answers. Children that hold any
  are refused, and so are children equal to their parent.
- harness.toml stays valid and its smoke command must pass."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Largest sizes in characters, and numbers of attempts shown."""

    source: int = 16_000
    attempt: int = 1_800
    failing: int = 5
    passing: int = 2
    lineage: int = 5_000
    table: int = 3_000


def prompt(brief: Brief, bounds: Bounds = Bounds()) -> str:
    """The whole brief as one text."""
    files = as_files(brief, bounds)
    return "\n\n".join(f"# {name}\n\n{text}" for name, text in files.items())


def as_files(brief: Brief, bounds: Bounds = Bounds()) -> dict[str, str]:
    """The brief by file name, in reading order; empty sections are left out."""
    sections = {"task.md": _task(brief), "constraints.md": CONSTRAINTS}
    for number, view in enumerate(brief.parents):
        prefix = "parent" if len(brief.parents) == 1 else f"parent{number + 1}"
        sections[f"{prefix}-source.md"] = source_text(view, bounds.source)
        sections[f"{prefix}-scores.md"] = table(view, bounds.table)
        sections[f"{prefix}-failing.md"] = _attempts(view, False, bounds.failing, bounds.attempt)
        sections[f"{prefix}-passing.md"] = _attempts(view, True, bounds.passing, bounds.attempt)
    sections["lineage.md"] = lineage_text(brief.snapshot, bounds.lineage)
    return {name: text for name, text in sections.items() if text}


def _task(brief: Brief) -> str:
    parts = [TASK, f"Island {brief.island}, round {brief.round}."]
    if len(brief.parents) > 1:
        parts.append("Combine both parents into one child that differs from each of them.")
    if brief.niche:
        parts.append(f"The island's niche: {brief.niche}")
    if brief.request:
        parts.append(f"The orchestrator asks: {brief.request}")
    if brief.error:
        parts.append(f"Your last child of this round was sent back: {brief.error}")
    return "\n".join(parts)


def source_text(view: ParentView, limit: int) -> str:
    """Every text file of a parent under its path, smaller files first; cuts are marked."""
    tree = view.harness.tree
    parts, left = [], limit
    for path in sorted(tree, key=lambda p: (p != "harness.toml", len(tree[p].data))):
        text = cut(tree.text(path), max(0, left))
        left -= len(text)
        parts.append(f"--- {path}\n{text}")
    return "\n".join(parts)


def table(view: ParentView, limit: int) -> str:
    """Per-task scores, the worst first."""
    rows = [
        f"{task} | {score.reward:.2f} | {score.n} | {score.tokens:.0f} | {score.latency_s:.1f}"
        for task, score in sorted(view.scores.items(), key=lambda item: (item[1].reward, item[0]))
    ]
    return cut("\n".join(["task | reward | attempts | tokens | seconds", *rows]), limit)


def _attempts(view: ParentView, resolved: bool, number: int, limit: int) -> str:
    chosen = _one_per_task_first(e for e in view.evidence if e.outcome.resolved is resolved)
    return "\n\n".join(attempt_text(item, limit) for item in chosen[:number])


def _one_per_task_first(items: Iterable[Evidence]) -> list[Evidence]:
    first: dict[str, Evidence] = {}
    more: list[Evidence] = []
    for item in items:
        if first.setdefault(item.outcome.key.task, item) is not item:
            more.append(item)
    return [*first.values(), *more]


def attempt_text(item: Evidence, limit: int) -> str:
    """One attempt in words: what was asked, said, run and left."""
    share = max(100, limit // 6)
    outcome, trace = item.outcome, item.trace
    lines = [
        f"## {outcome.key.task} ({outcome.status}, reward {outcome.reward}, "
        f"{outcome.usage.tokens} tokens, {len(trace.exchanges)} calls)",
        f"Task: {cut(item.instruction, share)}",
        f"Folder: {cut(', '.join(item.workspace_files), share // 2) or 'empty'}",
    ]
    if trace.exchanges:
        last = trace.exchanges[-1]
        lines.append(f"Last request: {cut(json.dumps(last.request.get('messages')), share)}")
        lines.append(f"Last response: {cut(json.dumps(last.response.get('choices')), share)}")
    for name, text in (("stderr", trace.stderr), ("verifier", trace.report)):
        if text.strip():
            lines.append(f"{name}: {cut(text.strip(), share)}")
    changed = ", ".join(f"{name}: {cut(text, 120)!r}" for name, text in trace.changed.items())
    lines.append(f"Changed files: {cut(changed, share) or 'none'}")
    return "\n".join(lines)


def lineage_text(snapshot: Sequence[Edge], limit: int) -> str:
    """The edges, newest first; those that fit least are reduced to their titles."""
    full, short, left = [], [], limit
    order = sorted(snapshot, key=lambda e: (not e.on_path, -e.round, e.child))
    for edge in order:
        text = edge_text(edge)
        if edge.on_path or len(text) <= left:
            full.append(text)
            left -= len(text)
        elif edge.verdict in (Verdict.REJECTED, Verdict.INVALID):
            short.append(f"- {edge.verdict}: {edge.change.title}")
    if short:
        full.append("Also tried:\n" + "\n".join(short))
    return "\n\n".join(full)


def edge_text(edge: Edge) -> str:
    """One edge: what was tried, why, and what it did."""
    lines = [f"{edge.parent} -> {edge.child} (round {edge.round}, {edge.verdict or 'unjudged'})"]
    lines.append(f"Edit: {edge.change.title}")
    if edge.change.hypothesis:
        lines.append(f"Hypothesis: {edge.change.hypothesis}")
    if edge.reason:
        lines.append(f"Reason: {edge.reason}")
    if edge.before and edge.after:
        lines.append(
            f"Accuracy {edge.before.accuracy:.3f} -> {edge.after.accuracy:.3f}, "
            f"tokens {edge.before.tokens:.0f} -> {edge.after.tokens:.0f}, "
            f"seconds {edge.before.latency_s:.1f} -> {edge.after.latency_s:.1f}"
        )
    for word, tasks in (("Now solved", edge.flipped_up), ("Now failed", edge.flipped_down)):
        if tasks:
            lines.append(f"{word}: {', '.join(tasks)}")
    if edge.patch:
        lines.append(cut(edge.patch, 1500))
    return "\n".join(lines)


def cut(text: str, limit: int) -> str:
    """The text within a limit; a cut is marked with what is left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}... ({len(text) - limit} more characters)"
