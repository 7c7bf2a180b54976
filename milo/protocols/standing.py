"""What a leaderboard says, as values: rows, how they stand to the baseline, and pairs."""

from __future__ import annotations

from dataclasses import dataclass

from milo.core.fitness import Interval
from milo.protocols.paired import SIGNIFICANT


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """The plain figures of a row: rates as shares, tokens, seconds and dollars per attempt.

    Dollars are None where the price is unknown.
    """

    reward: float
    resolved: float
    tokens: float
    latency_s: float
    dollars: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Against:
    """A row against the baseline: differences of shares, and ratios of costs (None: unknown)."""

    reward: float
    resolved: float
    reward_ratio: float | None
    tokens_ratio: float | None
    latency_ratio: float | None
    dollars_ratio: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One method, or one harness without a search. `k` is the least number of attempts a task.

    `searched_*` are means over its runs; None for a seed.
    """

    name: str
    runs: int
    k: int
    coverage: float
    reward: Interval
    resolved: Interval
    pass_at_k: float
    pass_hat_k: float
    figures: Figures
    against: Against | None = None
    searched_attempts: float | None = None
    searched_tokens: float | None = None
    searched_dollars: float | None = None
    searched_hours: float | None = None
    winners: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """`first` − `second` on one metric, with its interval, its p-value and the adjusted one."""

    first: str
    second: str
    metric: str
    difference: Interval
    p_value: float
    adjusted_p: float

    @property
    def is_resolved(self) -> bool:
        """Whether the difference is more than the luck of tasks (and runs)."""
        return self.adjusted_p < SIGNIFICANT


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaderboard:
    """Rows from the best down, the baseline's name, all pairs of rows, and notes."""

    split: str
    tasks: int
    baseline: str
    rows: tuple[Row, ...]
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...]


def against(figures: Figures, baseline: Figures) -> Against:
    """What MILO's leaderboard says of a row: +12.0 RR@5 at 0.74 × the tokens, 20 × the rate."""
    return Against(
        reward=figures.reward - baseline.reward,
        resolved=figures.resolved - baseline.resolved,
        reward_ratio=_ratio(figures.reward, baseline.reward),
        tokens_ratio=_ratio(figures.tokens, baseline.tokens),
        latency_ratio=_ratio(figures.latency_s, baseline.latency_s),
        dollars_ratio=_ratio(figures.dollars, baseline.dollars),
    )


def _ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None
