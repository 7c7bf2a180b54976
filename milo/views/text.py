"""How figures are written: the same words on the terminal, in the report and in `status`."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from enum import Enum

from milo.core.fitness import Fitness, Interval
from milo.core.moves import Curriculum, Graft, Move, Reassign, Speciate

DASH = "–"


def percent(share: float | None, digits: int = 1) -> str:
    """A share in [0, 1] as percent without its sign; a dash where there is none."""
    return DASH if share is None or not math.isfinite(share) else f"{100 * share:.{digits}f}"


def accuracy(interval: Interval | None) -> str:
    """A mean in [0, 1] with its 95 % half width, both in percent: ``61.2 ± 8.9``."""
    if interval is None:
        return DASH
    if not math.isfinite(interval.half_width):
        return f"{percent(interval.mean)} ± ?"
    return f"{percent(interval.mean)} ± {percent(interval.half_width)}"


def points_apart(interval: Interval) -> str:
    """A difference of means in percentage points: ``+24.0 points, 95 % interval +12.1 to +35.9``.

    An interval that can't be estimated is said to be unknown.
    """
    mean = f"{100 * interval.mean:+.1f} points, 95 % interval"
    if not math.isfinite(interval.half_width):
        return f"{mean} unknown"
    return f"{mean} {100 * interval.low:+.1f} to {100 * interval.high:+.1f}"


def count(number: float | None) -> str:
    """A large count in three digits: ``950``, ``1.4k``, ``23.0M``."""
    if number is None or not math.isfinite(number):
        return DASH
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= limit * 0.9995:
            return f"{number / limit:.1f}{unit}"
    return f"{number:.0f}"


def seconds(value: float | None) -> str:
    """A latency or a length of time: ``0.84 s``, ``12.3 s``, ``4 min 05 s``, ``3 h 07 min``."""
    if value is None or not math.isfinite(value):
        return DASH
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def clock(value: float) -> str:
    """Elapsed seconds as ``m:ss`` or ``h:mm:ss``; a dash where they are no number."""
    if not math.isfinite(value):
        return DASH
    minutes, rest = divmod(max(0, int(value)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def rough(value: float) -> str:
    """An estimated length of time, no finer than it is known."""
    if not math.isfinite(value):
        return DASH
    if value < 60:
        return "1 min" if value > 30 else "half a minute"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 90 else f"{value / 3600:.1f} h"


def dollars(value: float | None) -> str:
    """A price; an unknown price is said, never shown as zero."""
    if value is None or not math.isfinite(value):
        return "unknown"
    return f"${value:.2f}" if value >= 0.01 or value == 0 else f"${value:.4f}"


def ratio(part: float | None, whole: float | None) -> str:
    """``× 1.25``; a dash where either is missing or the whole is zero."""
    if part is None or not whole:
        return DASH
    return f"× {part / whole:.2f}"


def bar(done: float, wanted: float, width: int = 10) -> str:
    """A bar of `width` cells; empty where nothing is wanted, never longer than full."""
    share = min(1.0, max(0.0, done / wanted)) if wanted > 0 else 0.0
    full = int(share * width)
    return "█" * full + "░" * (width - full)


def fitness(value: Fitness | None) -> str:
    """Accuracy, tokens and latency in one phrase."""
    if value is None:
        return "not scored"
    return f"{percent(value.accuracy)} %, {count(value.tokens)} tokens, {seconds(value.latency_s)}"


def plural(number: int, noun: str) -> str:
    """``1 island``, ``3 islands``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def one_line(text: str) -> str:
    """The text on one line and without control characters.

    Words of a model or a harness reach the terminal only through this: an escape sequence in
    them could rewrite what the user sees.
    """
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


def shorten(text: str, width: int) -> str:
    """One line of at most `width` characters, cut with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= width else line[: max(0, width - 1)].rstrip() + "…"


def move_words(move: Move) -> str:
    """One move as a sentence without its subject."""
    match move:
        case Reassign():
            return f"reassign: island {move.island} gets the mutator {move.mutator}"
        case Graft():
            return (
                f"graft: {move.donor_candidate} of island {move.donor} co-parents the next child "
                f"of island {move.island}"
            )
        case Speciate():
            return (
                f"speciate: the subtree at {move.root} of island {move.island} becomes island "
                f"{move.new_island} with the mutator {move.mutator}"
            )
        case Curriculum():
            return f"curriculum: search set {move.epoch} of {plural(len(move.tasks), 'task')}"


def json_ready(value: object) -> object:
    """Dataclasses, named tuples, enums and mappings as plain JSON data.

    JSON knows no NaN and no infinity: both become None. Raises `TypeError` for anything else.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: json_ready(getattr(value, f.name)) for f in fields(value)}
    return _json_container(value)


def _json_container(value: object) -> object:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: json_ready(getattr(value, name)) for name in value._fields}
    if isinstance(value, dict):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(item) for item in value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
