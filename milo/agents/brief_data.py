"""The evidence as data, one JSON object per line, for the programs in the brief's folder.

Holds the same material as the texts, cut less. The verifier's own output, which may hold expected
answers, is never part of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from milo.agents.brief_text import middle_cut
from milo.core.evidence import Brief, Edge, Evidence, Exchange
from milo.core.fitness import Fitness

ATTEMPTS, EDGES, CANDIDATES = "data/attempts.jsonl", "data/edges.jsonl", "data/candidates.jsonl"
TEXT_CHARS = 20_000


def as_data(brief: Brief, limit: int) -> dict[str, str]:
    """The data files by name, within `limit` characters in all; attempts that don't fit are left
    out from the end: parents come before the library, failing attempts before passing ones, one
    per task before a second of the same."""
    views = (*brief.parents, *brief.library)
    edges = _lines(map(_edge, brief.snapshot), limit // 4)
    candidates = _lines(
        (
            {"candidate": view.candidate, "scores": {t: _score(s) for t, s in view.scores.items()}}
            for view in views
        ),
        limit // 8,
    )
    left = limit - len(edges) - len(candidates)
    items = ((view.candidate, item) for view in views for item in _ordered(view.evidence))
    attempts = _lines((_attempt(candidate, item) for candidate, item in items), left)
    return {ATTEMPTS: attempts, EDGES: edges, CANDIDATES: candidates}


def _ordered(evidence: Sequence[Evidence]) -> list[Evidence]:
    seen: dict[tuple[str, bool], int] = {}
    ranked: list[tuple[bool, int, int, Evidence]] = []
    for item in evidence:
        key = (item.outcome.key.task, item.outcome.resolved)
        seen[key] = seen.get(key, 0) + 1
        ranked.append((item.outcome.resolved, seen[key], len(ranked), item))
    return [item for *_, item in sorted(ranked, key=lambda row: row[:3])]


def _lines(items: Iterable[Mapping[str, object]], limit: int) -> str:
    lines, left = [], limit
    for item in items:
        line = json.dumps(item, ensure_ascii=False) + "\n"
        left -= len(line)
        if left < 0:
            break
        lines.append(line)
    return "".join(lines)


def _attempt(candidate: str, item: Evidence) -> dict[str, object]:
    outcome, trace = item.outcome, item.trace
    return {
        "candidate": candidate,
        "task": outcome.key.task,
        "family": item.family,
        "attempt": outcome.key.index,
        "status": outcome.status.value,
        "reward": outcome.reward,
        "resolved": outcome.resolved,
        "detail": outcome.detail,
        "exit_code": trace.exit_code,
        "seconds": round(outcome.latency_s, 3),
        "tokens": outcome.usage.tokens,
        "instruction": middle_cut(item.instruction, TEXT_CHARS),
        "workspace_files": list(item.workspace_files),
        "stdout": middle_cut(trace.stdout, TEXT_CHARS),
        "stderr": middle_cut(trace.stderr, TEXT_CHARS),
        "report": middle_cut(trace.report, TEXT_CHARS),
        "changed": {name: middle_cut(text, TEXT_CHARS) for name, text in trace.changed.items()},
        "calls": [_call(exchange) for exchange in trace.exchanges],
    }


def _call(exchange: Exchange) -> dict[str, object]:
    return {
        "status": exchange.status,
        "seconds": round(exchange.seconds, 3),
        "input_tokens": exchange.usage.uncached_input + exchange.usage.cached_input,
        "output_tokens": exchange.usage.output,
        "messages": _bounded(exchange.request.get("messages")),
        "reply": _bounded(exchange.response.get("choices") or exchange.response),
    }


def _bounded(value: object) -> object:
    """The value with every long text cut."""
    if isinstance(value, str):
        return middle_cut(value, TEXT_CHARS)
    if isinstance(value, Mapping):
        return {str(key): _bounded(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_bounded(item) for item in value]
    return value


def _score(score: object) -> dict[str, object]:
    names = ("n", "reward", "resolved", "tokens", "latency_s")
    return {name: getattr(score, name) for name in names}


def _edge(edge: Edge) -> dict[str, object]:
    return {
        "parent": edge.parent,
        "child": edge.child,
        "round": edge.round,
        "verdict": edge.verdict.value if edge.verdict else None,
        "title": edge.change.title,
        "diagnosis": edge.change.diagnosis,
        "hypothesis": edge.change.hypothesis,
        "evidence": list(edge.change.evidence),
        "reason": edge.reason,
        "before": _fitness(edge.before),
        "after": _fitness(edge.after),
        "flipped_up": list(edge.flipped_up),
        "flipped_down": list(edge.flipped_down),
        "patch": edge.patch,
        "on_path": edge.on_path,
    }


def _fitness(fitness: Fitness | None) -> dict[str, float] | None:
    return None if fitness is None else fitness._asdict()
