"""What a run costs, and whether its budget can pay for a search at all (SPEC §4, end)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from milo.core.budget import Budget
from milo.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSize:
    """The sizes that fix a run's cost: seeds, islands, tasks per split, attempts per task.

    `tested` harnesses are scored on the test split: the winner, and seeds to compare it with.
    `probe` is what admission may ask for beside a child's own scores.
    """

    seeds: int
    islands: int
    search: int
    validation: int
    test: int
    k: int
    tested: int = 1
    probe: int = 0

    @property
    def per_child(self) -> int:
        """Attempts that a child may need: search, a probe and, if it is admitted, validation."""
        return self.k * (self.search + self.validation) + self.probe

    @property
    def per_round(self) -> int:
        """Attempts that a round of all islands may need."""
        return self.islands * self.per_child

    @property
    def for_seeds(self) -> int:
        """Attempts before the first child: all seeds on search, the islands' on validation."""
        roots = min(self.seeds, self.islands)
        return self.k * (self.seeds * self.search + roots * self.validation)

    @property
    def for_test(self) -> int:
        """Attempts of the final test."""
        return self.k * self.tested * self.test


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Attempts by purpose, and the rounds the budget should buy (None: no limit says)."""

    seeds: int
    child: int
    round: int
    test: int
    rounds: int | None

    @property
    def least(self) -> int:
        """Attempts below which there is no search: seeds, one child and the test."""
        return self.seeds + self.child + self.test

    def __str__(self) -> str:
        rounds = "as many rounds as you wait for" if self.rounds is None else _rounds(self.rounds)
        return (
            f"{self.seeds} attempts for the seeds, {self.test} for the test, up to {self.child} a "
            f"child and {self.round} a round of all islands: the budget should buy {rounds}"
        )


def estimate(
    size: RunSize,
    budget: Budget,
    *,
    tokens_per_attempt: float | None = None,
    dollars_per_attempt: float | None = None,
    attempts_per_hour: float | None = None,
) -> Estimate:
    """What the run costs and how far the budget goes; raises `ConfigError` where too short.

    Tokens, dollars and hours bind only where their rate per attempt is known (measured or
    assumed); reaching a limit ends the run anyway.
    """
    if budget.rounds is not None and budget.rounds < 0:
        raise ConfigError("budget.rounds", "0 (no search) or more", str(budget.rounds))
    rates = {
        "attempts": 1.0,
        "tokens": tokens_per_attempt,
        "dollars": dollars_per_attempt,
        "hours": 1.0 / attempts_per_hour if attempts_per_hour else None,
    }
    child = 0 if budget.rounds == 0 else size.per_child
    least = size.for_seeds + child + size.for_test
    affordable = []
    for name, rate in rates.items():
        limit = getattr(budget, name)
        if limit is None or rate is None:
            continue
        _check(name, limit, rate * least, least)
        affordable.append((limit / rate - size.for_seeds - size.for_test) / size.per_round)
    # The last round may be one of some islands only: it counts, since at least a child fits.
    bought = [max(1, math.floor(rounds)) for rounds in affordable]
    if budget.rounds is not None:
        bought.append(budget.rounds)
    return Estimate(
        seeds=size.for_seeds,
        child=size.per_child,
        round=size.per_round,
        test=size.for_test,
        rounds=min(bought, default=None),
    )


def _check(name: str, limit: float, needed: float, attempts: int) -> None:
    if limit < needed:
        raise ConfigError(
            f"budget.{name}",
            f"at least {needed:.6g}, to score the seeds, one child and the final test "
            f"({attempts} attempts)",
            f"{limit:g}",
        )


def _rounds(rounds: int) -> str:
    return f"about {rounds} round{'s' if rounds != 1 else ''}"
