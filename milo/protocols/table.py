"""The leaderboard as text for a terminal, and as JSON-ready data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass

from milo.core.fitness import Interval
from milo.protocols.standing import Leaderboard, Pair, Row

DASH = "–"
HEAD = (
    "",
    "runs",
    "PR@k",
    "RR@k",
    "pass@k",
    "pass^k",
    "tokens",
    "seconds",
    "dollars",
    "vs baseline",
    "search",
)


def leaderboard_text(board: Leaderboard) -> str:
    """The table, the resolved differences, the unresolved ones by name, and the notes."""
    lines = [f"{board.split} split, {board.tasks} tasks, k = {_ks(board.rows)}", ""]
    lines += columns([HEAD, *(_cells(row, board.baseline) for row in board.rows)])
    lines += ["", *_differences(board.pairs)]
    lines += [f"note: {note}" for note in board.notes]
    return "\n".join(lines)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as aligned lines: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def json_ready(value: object) -> object:
    """Plain data of frozen values; numbers that JSON can't hold become null."""
    if isinstance(value, Interval):
        return {name: json_ready(getattr(value, name)) for name in value._fields}
    if is_dataclass(value) and not isinstance(value, type):
        data = {f.name: json_ready(getattr(value, f.name)) for f in fields(value)}
        return {**data, "resolved": value.is_resolved} if isinstance(value, Pair) else data
    if isinstance(value, dict):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def percent(interval: Interval) -> str:
    """A share with its half width in percent: ``61.2 ± 8.9``."""
    half = interval.half_width
    return f"{100 * interval.mean:.1f} ± {f'{100 * half:.1f}' if math.isfinite(half) else '?'}"


def _ks(rows: Iterable[Row]) -> str:
    ks = sorted({row.k for row in rows})
    return str(ks[0]) if len(ks) == 1 else f"{ks[0]} to {ks[-1]}"


def _cells(row: Row, baseline: str) -> tuple[str, ...]:
    figures = row.figures
    return (
        row.name,
        str(row.runs) if row.runs else DASH,
        percent(row.reward),
        percent(row.resolved),
        f"{100 * row.pass_at_k:.1f}",
        f"{100 * row.pass_hat_k:.1f}",
        f"{figures.tokens:,.0f}",
        f"{figures.latency_s:.2f}",
        DASH if figures.dollars is None else f"{figures.dollars:.4f}",
        "baseline" if row.name == baseline else _against(row),
        _search(row),
    )


def _against(row: Row) -> str:
    if row.against is None:
        return DASH
    ratio = row.against.tokens_ratio
    times = "" if ratio is None else f", {ratio:.2f}× tokens"
    return f"{100 * row.against.resolved:+.1f} RR{times}"


def _search(row: Row) -> str:
    if row.searched_attempts is None or row.searched_tokens is None:
        return DASH
    dollars = "" if not row.searched_dollars else f", ${row.searched_dollars:.2f}"
    return f"{row.searched_attempts:.0f} attempts, {row.searched_tokens / 1e3:.0f}k tokens{dollars}"


def _differences(pairs: Sequence[Pair]) -> list[str]:
    lines = [_resolved(pair) for pair in pairs if pair.is_resolved]
    open_ = [pair for pair in pairs if not pair.is_resolved]
    if open_:
        lines.append("unresolved (may be the luck of these tasks and runs):")
        lines += [f"  {_words(pair)}" for pair in open_]
    return lines


def _resolved(pair: Pair) -> str:
    verb = "is above" if pair.difference.mean > 0 else "is below"
    return f"{pair.first} {verb} {pair.second}: {_words(pair)}"


def _words(pair: Pair) -> str:
    d = pair.difference
    bounds = (
        f"{100 * d.low:+.1f} to {100 * d.high:+.1f}" if math.isfinite(d.half_width) else "unknown"
    )
    return (
        f"{pair.metric} {pair.first} − {pair.second} = {100 * d.mean:+.1f} points "
        f"({bounds}), p = {pair.p_value:.3f}, adjusted {pair.adjusted_p:.3f}"
    )
