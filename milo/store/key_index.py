"""Where each attempt lies, compactly: sorted arrays of key hashes, 21 bytes an attempt."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milo.core.attempt import AttemptKey

Words = NDArray[np.uint64]
Rows = NDArray[np.int64]


def hash_keys(keys: Sequence[AttemptKey]) -> tuple[Words, Words]:
    """128-bit hashes of keys as two arrays (n,); they are stored, so they may never change."""
    digests = b"".join(_digest(key) for key in keys)
    words = np.frombuffer(digests, dtype="<u8").reshape(-1, 2)
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)


def _digest(key: AttemptKey) -> bytes:
    parts = (
        key.harness,
        key.task,
        key.task_digest,
        key.model,
        str(key.replicate),
        str(key.index),
    )
    # Lengths make the joining unambiguous whatever the parts hold.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyIndex:
    """The newest row of every key, sorted by (high, low).

    Arrays of equal length n: `high` and `low` halves of the key hash, `row` the attempt's number
    over all parts, `valid` whether it says something about the harness.
    """

    high: Words
    low: Words
    row: NDArray[np.uint32]
    valid: NDArray[np.bool_]

    @classmethod
    def empty(cls) -> KeyIndex:
        """An index of nothing."""
        return cls(
            high=np.empty(0, np.uint64),
            low=np.empty(0, np.uint64),
            row=np.empty(0, np.uint32),
            valid=np.empty(0, np.bool_),
        )

    def __len__(self) -> int:
        return len(self.high)

    def find(self, high: Words, low: Words) -> Rows:
        """Positions in the index (m,), −1 for keys that it lacks."""
        found = np.full(len(high), -1, np.int64)
        at = np.searchsorted(self.high, high, side="left").astype(np.int64)
        open_ = np.arange(len(high))
        while open_.size:
            # Two keys may share their high half: walk on until the low half agrees too.
            open_ = open_[at[open_] < len(self)]
            open_ = open_[self.high[at[open_]] == high[open_]]
            same = self.low[at[open_]] == low[open_]
            found[open_[same]] = at[open_[same]]
            open_ = open_[~same]
            at[open_] += 1
        return found

    def extended(self, high: Words, low: Words, valid: NDArray[np.bool_], first: int) -> KeyIndex:
        """The index with more rows, numbered from `first`; of one key the last row stays."""
        rows = np.arange(first, first + len(high), dtype=np.uint32)
        merged_high = np.concatenate([self.high, high])
        # Stable: equal high halves stay in row order (and sorted stretches merge cheaply).
        order = np.argsort(merged_high, kind="stable")
        merged = KeyIndex(
            high=merged_high[order],
            low=np.concatenate([self.low, low])[order],
            row=np.concatenate([self.row, rows])[order],
            valid=np.concatenate([self.valid, valid])[order],
        )
        return merged._without_older()

    def _without_older(self) -> KeyIndex:
        twins = self.high[1:] == self.high[:-1]
        if not twins.any():
            return self
        self._sort_twins(np.flatnonzero(np.append(twins, False) | np.insert(twins, 0, False)))
        older = (self.high[1:] == self.high[:-1]) & (self.low[1:] == self.low[:-1])
        keep = np.append(~older, True)
        return KeyIndex(
            high=self.high[keep], low=self.low[keep], row=self.row[keep], valid=self.valid[keep]
        )

    def _sort_twins(self, twins: Rows) -> None:
        """Order the rows of equal high half, in place, by low half and then by row."""
        order = twins[np.lexsort((self.row[twins], self.low[twins], self.high[twins]))]
        for column in (self.low, self.row, self.valid):
            column[twins] = column[order]
