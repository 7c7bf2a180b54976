"""What a problem is: how a candidate is read, and two implementations of its objective.

A candidate is the arena's JSON object with one field. Reading applies the arena's acceptance
rules and raises `Rejected`; the two objectives see what was accepted only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

AGREEMENT = 1e-12
"""Relative difference of the two implementations from which a candidate is refused."""
MAX_VALUES = 100_000
"""The longest construction that is read."""
EXACT_INTEGERS = 2**53


class Rejected(ValueError):
    """The arena's verdict that a candidate is none; the message says why."""


class Direction(StrEnum):
    """Which way is better."""

    MINIMISE = "minimise"
    MAXIMISE = "maximise"


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """A value that somebody published, as it was printed: trailing zeros tell its precision."""

    who: str
    printed: str

    @property
    def value(self) -> float:
        """The nearest float."""
        return float(self.printed)

    @property
    def unit(self) -> Decimal:
        """One unit in the last printed digit."""
        return Decimal((0, (1,), int(Decimal(self.printed).as_tuple().exponent)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One open problem.

    `field` is the key of the arena's JSON; `read` makes its value an array or raises `Rejected`;
    `fast` and `direct` are the two implementations of the objective (raise `Rejected` too).
    `minimum_improvement` is what the arena asks of a new leader (0 where any gain will do).
    Values below `floor` need only agree as if they were that large: they are far from any record.
    """

    name: str
    title: str
    direction: Direction
    field: str
    minimum_improvement: float
    read: Callable[[object], Array]
    fast: Callable[[Array], float]
    direct: Callable[[Array], float]
    published: tuple[Published, ...] = ()
    floor: float = 0.0

    @property
    def sign(self) -> float:
        """+1 where larger is better, −1 where smaller is."""
        return 1.0 if self.direction is Direction.MAXIMISE else -1.0

    def gain(self, value: float, over: float) -> float:
        """By how much a value is better than another; negative where it is worse."""
        return self.sign * (value - over)

    @property
    def best_published(self) -> Published | None:
        """The best of the published values."""
        return max(self.published, key=lambda one: self.sign * one.value, default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified:
    """An accepted candidate: its numbers as they were given, what was read of them (brought to the
    right sum, or to length one), and what the two implementations make of that.

    Reading what was read may round once more, and even refuse it: keep what was given.
    """

    given: Array
    construction: Array
    value: float
    fast: float


def verify(problem: Problem, candidate: object) -> Verified:
    """Judge a candidate (the arena's JSON, parsed) by both implementations.

    Raises `Rejected` where a rule refuses it, where a value is not finite, or where the two
    implementations differ by more than `AGREEMENT`: then rounding decides, not mathematics.
    """
    if not isinstance(candidate, Mapping) or problem.field not in candidate:
        raise Rejected(f"expected a JSON object with the key {problem.field!r}")
    construction = problem.read(candidate[problem.field])
    with np.errstate(all="ignore"):
        value, other = _computed(problem.direct, construction), problem.fast(construction)
    if not (math.isfinite(value) and math.isfinite(other)):
        size = float(np.abs(construction).max())
        raise Rejected(
            f"the two verifiers give {value!r} and {other!r}: products of numbers of up to "
            f"{size:.3g} leave the range of floats; bring the largest near 1"
        )
    if abs(value - other) > AGREEMENT * max(abs(value), problem.floor):
        raise Rejected(f"the two verifiers differ: {value!r} and {other!r}")
    given = np.array(candidate[problem.field], dtype=np.float64) + 0.0
    return Verified(given=given, construction=construction, value=value, fast=other)


def _computed(objective: Callable[[Array], float], construction: Array) -> float:
    """The objective; infinite where an exact value is too large for a float."""
    try:
        return objective(construction)
    except OverflowError:
        return math.inf


def numbers(value: object, *, most: int = MAX_VALUES) -> Array:
    """A flat list of finite numbers as an array of shape (n,); negative zero becomes zero."""
    if not isinstance(value, list) or not value:
        raise Rejected("expected a list of numbers that is not empty")
    if len(value) > most:
        raise Rejected(f"expected at most {most} numbers, found {len(value)}")
    return np.array([_number(one, at) for at, one in enumerate(value, 1)], dtype=np.float64)


def rows(value: object, count: int, width: int) -> Array:
    """A list of `count` lists of `width` finite numbers, as an array of that shape."""
    if not isinstance(value, list) or len(value) != count:
        found = len(value) if isinstance(value, list) else type(value).__name__
        raise Rejected(f"expected a list of {count} points, found {found}")
    for at, row in enumerate(value, 1):
        if not isinstance(row, list) or len(row) != width:
            raise Rejected(f"expected points of {width} numbers, point {at} is none")
    flat = [[_number(one, at) for one in row] for at, row in enumerate(value, 1)]
    return np.array(flat, dtype=np.float64)


def _number(one: object, at: int) -> float:
    """One number of the list; `at` is its place, counted from 1."""
    if isinstance(one, bool) or not isinstance(one, int | float):
        raise Rejected(f"expected a number at place {at}, found {type(one).__name__}")
    try:
        number = float(one)
    except OverflowError:
        raise Rejected(f"the number at place {at} is too large for a float") from None
    if not math.isfinite(number):
        raise Rejected(f"the number at place {at} is {number!r}; only finite numbers are allowed")
    return number + 0.0


def unit_scale(values: Array) -> Array:
    """The values times the power of two that brings the largest magnitude into [0.5, 1).

    Exact but for what underflows, so an objective without a scale gives the same on both.
    """
    _, exponent = np.frexp(np.abs(values).max())
    return np.ldexp(values, -int(exponent))
