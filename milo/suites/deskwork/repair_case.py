"""What family `repair` breaks: one function with its bugs, its intent and random inputs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from milo.suites.deskwork.words import CITIES, FRUITS


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One function. `$NAME` and the keys of `options` are filled into source and intent.

    `bugs` are pairs (right text, wrong text) within the source; `inputs` makes argument lists.
    """

    names: tuple[str, ...]
    intent: str
    source: str
    bugs: tuple[tuple[str, str], ...]
    inputs: Callable[[random.Random], list[Any]]
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def ints(rng: random.Random, low: int = -20, high: int = 60, least: int = 0) -> list[int]:
    """Up to seven numbers."""
    return [rng.randint(low, high) for _ in range(rng.randint(least, 7))]


def phrase(rng: random.Random) -> str:
    """One to five words."""
    words = [rng.choice((*FRUITS, *CITIES)) for _ in range(rng.randint(1, 5))]
    return " ".join(words)


def word(rng: random.Random) -> str:
    """One word, sometimes a palindrome."""
    return rng.choice(("level", "Noon", "abba", "Rotor", "kayak", *FRUITS, *CITIES))
