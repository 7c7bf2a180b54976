"""Signs and integers: flat polynomials and difference bases.

Sources: the arena's verifiers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from milo.suites.arena.problems.problem import EXACT_INTEGERS, Array, Rejected, numbers

CIRCLE_POINTS = 1_000_000
"""Points on the circle from angle 0 to 2π, both included: a grid of 999,999 steps."""
LARGEST_BASIS = 2000
CHUNK = 65_536


# --- flat polynomials --------------------------------------------------------------------------


def read_signs(value: object, count: int) -> Array:
    """`count` coefficients, each +1 or −1."""
    signs = numbers(value)
    if len(signs) != count or not (np.abs(signs) == 1).all():
        raise Rejected(f"expected {count} coefficients, each +1 or -1")
    return signs


def flat_fast(signs: Array) -> float:
    """max |p| on the grid over √(n + 1), by one FFT."""
    values = np.fft.rfft(signs, CIRCLE_POINTS - 1)
    return float(np.abs(values).max() / math.sqrt(len(signs) + 1))


def flat_direct(signs: Array) -> float:
    """The same by Horner's rule on the half circle (the other half is its mirror image)."""
    largest = 0.0
    step = 2 * math.pi / (CIRCLE_POINTS - 1)
    for start in range(0, CIRCLE_POINTS // 2 + 1, CHUNK):
        z = np.exp(1j * step * np.arange(start, min(start + CHUNK, CIRCLE_POINTS // 2 + 1)))
        total = np.zeros_like(z)
        for sign in signs:
            total = total * z + sign
        largest = max(largest, float(np.abs(total).max()))
    return largest / math.sqrt(len(signs) + 1)


# --- difference bases --------------------------------------------------------------------------


def read_basis(value: object) -> Array:
    """Distinct integers from 0 on, sorted; 0 is added where it is missing."""
    given = numbers(value, most=LARGEST_BASIS)
    if given.max() >= EXACT_INTEGERS:
        raise Rejected(f"expected integers below {EXACT_INTEGERS}")
    if given.min() < 0 or (given != np.trunc(given)).any():
        raise Rejected("expected integers of at least 0")
    basis = np.unique(np.append(given, 0.0))
    if len(basis) > LARGEST_BASIS:
        raise Rejected(f"expected at most {LARGEST_BASIS} elements, found {len(basis)}")
    return np.asarray(basis)


def basis_fast(basis: Array) -> float:
    """|B|² / v with v the largest such that every 1..v is a difference."""
    n = len(basis)
    most = n * (n - 1) // 2
    seen = np.zeros(most + 2, dtype=bool)
    for shift in range(1, n):
        gaps = basis[shift:] - basis[:-shift]
        seen[gaps[gaps <= most].astype(np.int64)] = True
    return _score(n, int(np.argmin(seen[1:])))


def basis_direct(basis: Array) -> float:
    """The same from the set of differences."""
    whole = [int(one) for one in basis]
    return _score(len(whole), covered(whole))


def covered(whole: Sequence[int]) -> int:
    """The largest v such that every 1..v is a difference; `whole` ascends."""
    differences = {b - a for i, a in enumerate(whole) for b in whole[i + 1 :]}
    v = 0
    while v + 1 in differences:
        v += 1
    return v


def _score(n: int, v: int) -> float:
    if v == 0:
        raise Rejected("1 is no difference of the set")
    return n * n / v
