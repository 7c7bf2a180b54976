"""Edits of a schedule: one small change each, drawn at random, with words for the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from milo.agents.arena_operators.program import NAMED, SHARE, Entry, Program

LONGEST = 8
SPREAD = 0.7
"""Standard deviation of the logarithm of a factor by which a number is tuned."""
SHARE_SPREAD = 0.6

Schedule = tuple[Entry, ...]
Rng = np.random.Generator


class Edited(NamedTuple):
    """A changed schedule and what was done, in words."""

    schedule: Schedule
    title: str


Edit = Callable[[Program, Schedule, Rng], Edited | None]


def tune(program: Program, schedule: Schedule, rng: Rng) -> Edited | None:
    """Scale one number of one move."""
    numbers = [
        (at, key)
        for at, entry in enumerate(schedule)
        for key, value in {**program.moves[entry[NAMED]], **entry}.items()
        if key not in (NAMED, SHARE) and _is_number(value)
    ]
    if not numbers:
        return None
    at, key = numbers[int(rng.integers(len(numbers)))]
    before = {**program.moves[schedule[at][NAMED]], **schedule[at]}[key]
    after = _scaled(before, float(np.exp(rng.normal() * SPREAD)))
    if after == before:
        return None
    words = f"Tune {schedule[at][NAMED]}.{key} from {before!r} to {after!r}"
    return Edited(_replaced(schedule, at, {key: after}), words)


def reshare(program: Program, schedule: Schedule, rng: Rng) -> Edited | None:
    """Give one move more or less of the time."""
    if len(schedule) < 2:
        return None
    at = int(rng.integers(len(schedule)))
    before = float(schedule[at].get(SHARE, 1.0))
    after = float(f"{before * np.exp(rng.normal() * SHARE_SPREAD):.3g}")
    words = f"Give {schedule[at][NAMED]} a share of {after:g} instead of {before:g}"
    return Edited(_replaced(schedule, at, {SHARE: after}), words)


def insert(program: Program, schedule: Schedule, rng: Rng) -> Edited | None:
    """Put another move in, with its default parameters; absent ones first."""
    if len(schedule) >= LONGEST:
        return None
    used = {entry[NAMED] for entry in schedule}
    names = sorted(set(program.moves) - used) or sorted(program.moves)
    name = names[int(rng.integers(len(names)))]
    at = int(rng.integers(len(schedule) + 1))
    entry = {NAMED: name, SHARE: 1.0, **program.moves[name]}
    where = f"before {schedule[at][NAMED]}" if at < len(schedule) else "at the end"
    return Edited((*schedule[:at], entry, *schedule[at:]), f"Insert {name} {where}")


def drop(program: Program, schedule: Schedule, rng: Rng) -> Edited | None:
    """Take a move out."""
    if len(schedule) < 2:
        return None
    at = int(rng.integers(len(schedule)))
    return Edited((*schedule[:at], *schedule[at + 1 :]), f"Drop {schedule[at][NAMED]}")


def swap(program: Program, schedule: Schedule, rng: Rng) -> Edited | None:
    """Exchange two moves' places."""
    if len(schedule) < 2:
        return None
    i, j = sorted(int(k) for k in rng.choice(len(schedule), 2, replace=False))
    order = list(schedule)
    order[i], order[j] = order[j], order[i]
    return Edited(tuple(order), f"Swap {schedule[i][NAMED]} and {schedule[j][NAMED]}")


def crossed(first: Schedule, second: Schedule, rng: Rng) -> Edited:
    """A beginning of one schedule and an end of another, both kept where they are short."""
    if len(first) + len(second) <= 3:
        return Edited((*first, *second), "Run both parents' moves in turn")
    cut, begin = int(rng.integers(1, len(first) + 1)), int(rng.integers(len(second)))
    joined = (*first[:cut], *second[begin:])[:LONGEST]
    return Edited(joined, f"Join {cut} moves of one parent and {len(joined) - cut} of the other")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _scaled(value: float, factor: float) -> float:
    if isinstance(value, int):
        return max(1, round(value * factor))
    return float(f"{value * factor:.3g}")


def _replaced(schedule: Schedule, at: int, values: Mapping[str, Any]) -> Schedule:
    return (*schedule[:at], {**schedule[at], **values}, *schedule[at + 1 :])


def weighted(edits: Sequence[tuple[Edit, float]], rng: Rng) -> Edit:
    """One of the edits, by weight."""
    weights = np.array([weight for _, weight in edits])
    return edits[int(rng.choice(len(edits), p=weights / weights.sum()))][0]
