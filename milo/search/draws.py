"""Random draws of an island: one generator per purpose and round, so that timing can't matter.

A draw depends on the run's seed, the island, the round and the purpose alone: the same after a
resume, under another PYTHONHASHSEED, and whatever the other islands did meanwhile.
"""

from __future__ import annotations

import zlib
from enum import IntEnum

import numpy as np

from milo.search.needs import IslandSetup


class Purpose(IntEnum):
    """What a draw is for; part of its key."""

    SELECTION = 1
    ADMISSION = 2
    MUTATION = 3


def generator(
    setup: IslandSetup, round_: int, purpose: Purpose, nth: int = 0
) -> np.random.Generator:
    """A fresh generator for the `nth` draw of this purpose in this round."""
    key = [setup.run_seed % 2**64, zlib.crc32(setup.island.encode()), round_, purpose, nth]
    return np.random.default_rng(key)


def draw_seed(setup: IslandSetup, round_: int, nth: int) -> int:
    """The seed of the mutator's own generator, another one for each try; in [0, 2³¹)."""
    return int(generator(setup, round_, Purpose.MUTATION, nth).integers(2**31))
