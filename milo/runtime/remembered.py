"""A figure that costs a walk over the whole run, worked out only when there is something new."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """What `work` gives, as of the last record that was taken. One owner."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._known: tuple[int, T] | None = None

    def at(self, seq: int) -> T:
        """The figure at a record's number: worked out once for each."""
        if self._known is None or self._known[0] != seq:
            self._known = (seq, self._work())
        return self._known[1]
