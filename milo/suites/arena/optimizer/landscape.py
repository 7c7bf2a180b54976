"""What moves may ask of a landscape. All values are minimised; x is an array as the verifier
reads it, never changed in place."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from milo.suites.arena.problems.problem import Array


class Step(NamedTuple):
    """Where a linear model says to go, and the value it promises there."""

    x: Array
    promised: float


@runtime_checkable
class Landscape(Protocol):
    """A problem as something to search on."""

    def value(self, x: Array) -> float:
        """What is minimised; infinite where x is no candidate."""
        ...

    def repair(self, x: Array) -> Array:
        """An acceptable point near x."""
        ...

    def random(self, rng: np.random.Generator, like: Array) -> Array:
        """A random acceptable point, of the size of `like`."""
        ...

    def kicked(self, x: Array, rng: np.random.Generator, size: float) -> Array:
        """An acceptable point at a relative distance of about `size`."""
        ...


@runtime_checkable
class Linear(Protocol):
    """A landscape with linear models."""

    def step(self, x: Array, radius: float) -> Step | None:
        """The best point of the linear model at x within `radius`; None where it has none."""
        ...


@runtime_checkable
class Smooth(Protocol):
    """A landscape whose maximum can be smoothed."""

    lower: float | None
    upper: float | None

    def smoothed(self, x: Array, sharpness: float) -> tuple[float, Array]:
        """Value and gradient with the maximum replaced by a log-sum-exp (∞: a subgradient)."""
        ...


@runtime_checkable
class Scaled(Protocol):
    """A landscape of functions on a grid that can be made finer or chosen anew."""

    def resized(self, x: Array, n: int) -> Array:
        """The same function on n steps, as nearly as that can be."""
        ...
