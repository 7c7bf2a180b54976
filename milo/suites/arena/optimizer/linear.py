"""Linear programs: the one place that calls the solver (HiGHS through scipy)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, vstack

from milo.suites.arena.problems.problem import Array

Rows = tuple[np.ndarray, np.ndarray]
"""Columns and values of sparse rows, both of shape (rows, entries)."""


class Program(NamedTuple):
    """min cost·z subject to rows·z ≤ bound, equal·z = total, low ≤ z ≤ high."""

    cost: Array
    rows: Array | csr_matrix
    bound: Array
    low: Array
    high: Array
    equal: Array | None = None
    total: float = 0.0


def solved(program: Program) -> Array | None:
    """An optimal z, or None where the solver found none."""
    equal = None if program.equal is None else program.equal[None, :]
    found = linprog(
        program.cost,
        A_ub=program.rows,
        b_ub=program.bound,
        A_eq=equal,
        b_eq=None if equal is None else [program.total],
        bounds=np.column_stack((program.low, program.high)),
        method="highs",
    )
    if found.x is None or not np.isfinite(found.x).all():
        return None
    return np.asarray(found.x)


def minimax(
    pieces: Array, slopes: Array, low: Array, high: Array, cost: Array | None = None
) -> tuple[Array, float] | None:
    """Minimise over d: max(pieces + slopes·d) + cost·d with Σd = 0; d and the value promised.

    `pieces` has shape (m,), `slopes` (m, n), `low` and `high` (n,).
    """
    n = slopes.shape[1]
    price = np.zeros(n) if cost is None else cost
    z = solved(
        Program(
            cost=np.append(price, 1.0),
            rows=np.hstack([slopes, -np.ones((len(pieces), 1))]),
            bound=-pieces,
            low=np.append(low, -np.inf),
            high=np.append(high, np.inf),
            equal=np.append(np.ones(n), 0.0),
        )
    )
    return None if z is None else (z[:n], float(z[n] + price @ z[:n]))


def sparse_rows(entries: list[Rows], width: int) -> csr_matrix:
    """Blocks of rows, stacked; `width` columns in all."""
    parts = [
        csr_matrix(
            (
                values.ravel(),
                (np.repeat(np.arange(len(columns)), columns.shape[1]), columns.ravel()),
            ),
            shape=(len(columns), width),
        )
        for columns, values in entries
    ]
    return csr_matrix(vstack(parts))
