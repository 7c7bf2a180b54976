"""Scores in tables: per task, and for a graft what each parent solves that the other doesn't."""

from __future__ import annotations

from collections.abc import Sequence

from milo.agents.brief_text import cut
from milo.core.evidence import ParentView
from milo.core.fitness import TaskScore


def table(view: ParentView, limit: int) -> str:
    """Per-task scores, the worst first."""
    rows = [
        f"{task} | {score.reward:.2f} | {score.n} | {score.resolved} | {score.tokens:.0f} | "
        f"{score.latency_s:.1f}"
        for task, score in sorted(view.scores.items(), key=lambda item: (item[1].reward, item[0]))
    ]
    head = "task | reward | attempts | solved | tokens | seconds"
    return cut("\n".join([_summary(view), "", head, *rows]), limit)


def _summary(view: ParentView) -> str:
    scores = list(view.scores.values())
    if not scores:
        return f"{view.candidate}: not scored"
    n = len(scores)
    return (
        f"{view.candidate}: accuracy {view.accuracy:.3f}, "
        f"{sum(s.tokens for s in scores) / n:.0f} tokens and "
        f"{sum(s.latency_s for s in scores) / n:.1f} s per attempt, over {n} tasks"
    )


def complement(parents: Sequence[ParentView], limit: int) -> str:
    """What each of two parents solves that the other doesn't, and what neither does."""
    first, second = parents[0], parents[1]
    shared = sorted(set(first.scores) & set(second.scores))
    one = [t for t in shared if _solves(first.scores[t]) and not _solves(second.scores[t])]
    two = [t for t in shared if _solves(second.scores[t]) and not _solves(first.scores[t])]
    none = [t for t in shared if not _solves(first.scores[t]) and not _solves(second.scores[t])]
    rows = [
        f"{task} | {first.scores[task].reward:.2f} | {second.scores[task].reward:.2f}"
        for task in [*one, *two, *none]
    ]
    lines = [
        f"Solved by {first.candidate} alone ({len(one)}): {', '.join(one) or 'none'}",
        f"Solved by {second.candidate} alone ({len(two)}): {', '.join(two) or 'none'}",
        f"Solved by neither ({len(none)}): {', '.join(none) or 'none'}",
        "",
        f"task | reward of {first.candidate} | reward of {second.candidate}",
        *rows,
    ]
    return cut("\n".join(lines), limit)


def _solves(score: TaskScore) -> bool:
    """Solved in most attempts."""
    return 2 * score.resolved > score.n
