"""Invented names and things for the generators."""

from __future__ import annotations

import random
from collections.abc import Sequence

FIRST = (
    "Mara", "Jonas", "Ilse", "Tobin", "Renata", "Kofi", "Selma", "Otis", "Nadia", "Bruno", "Freya",
    "Hugo", "Lina", "Marek", "Petra", "Samir", "Tilda", "Viktor", "Wanda", "Yara", "Emil", "Dora",
)  # fmt: skip
LAST = (
    "Lindholt", "Varga", "Oduya", "Brandt", "Castell", "Dorsey", "Eklund", "Farrow", "Gruber",
    "Holm", "Ivers", "Jansen", "Keller", "Lorne", "Mistry", "Novak", "Osborne", "Prescott",
)  # fmt: skip
CITIES = (
    "Velden", "Marport", "Ashby", "Tornau", "Linwood", "Sollen", "Brackton", "Quellin", "Harwick",
    "Ostrow", "Fenmoor", "Calder", "Rivona", "Stellin", "Dunmere", "Halvik",
)  # fmt: skip
GOODS = (
    "lamps", "chairs", "notebooks", "kettles", "blankets", "mugs", "candles", "shelves", "pillows",
    "clocks", "baskets", "mirrors", "towels", "trays", "stools", "vases",
)  # fmt: skip
FRUITS = (
    "apple", "pear", "plum", "cherry", "quince", "fig", "melon", "grape", "lemon", "peach", "mango",
    "papaya",
)  # fmt: skip
SERVICES = ("auth", "billing", "search", "mail", "stock", "gateway", "report", "cart")
TOPICS = (
    "budget", "roster", "travel", "lease", "menu", "survey", "audit", "launch", "repair", "garden",
    "parking", "library",
)  # fmt: skip
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def person(rng: random.Random) -> str:
    """A first and a last name."""
    return f"{rng.choice(FIRST)} {rng.choice(LAST)}"


def sample(rng: random.Random, pool: Sequence[str], count: int) -> list[str]:
    """Distinct entries of a pool in random order."""
    return rng.sample(list(pool), count)


def prose(rng: random.Random, topic: str) -> str:
    """One short line of office text about a topic."""
    what = rng.choice(("notes", "draft", "plan", "list", "summary", "memo"))
    return f"{topic} {what} by {rng.choice(FIRST)}, page {rng.randint(1, 40)}"
