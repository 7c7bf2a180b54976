"""One attempt: harness h on task x in a fresh environment, and how it ended (SPEC §2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

TRIED = "tried-"
"""How flags begin that change no score."""


class Status(StrEnum):
    """How an attempt ended; keeps the harness's failures apart from ours."""

    COMPLETED = "completed"
    AGENT_ERROR = "agent_error"
    AGENT_TIMEOUT = "agent_timeout"
    BUDGET_EXCEEDED = "budget_exceeded"
    ENVIRONMENT_ERROR = "environment_error"
    VERIFIER_ERROR = "verifier_error"
    MODEL_ERROR = "model_error"

    @property
    def is_infrastructure(self) -> bool:
        """Ours, not the harness's: retried, then recorded as missing, never as a zero."""
        return self in (Status.ENVIRONMENT_ERROR, Status.VERIFIER_ERROR, Status.MODEL_ERROR)


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens, calls and dollars. `dollars` is None where the price is unknown (not zero)."""

    uncached_input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    calls: int = 0
    dollars: float | None = 0.0
    estimated: bool = False

    @property
    def tokens(self) -> int:
        """All tokens; reasoning tokens are part of `output` and are not added again."""
        return self.uncached_input + self.cached_input + self.cache_write + self.output

    def __add__(self, other: Usage) -> Usage:
        dollars = (
            None if self.dollars is None or other.dollars is None else self.dollars + other.dollars
        )
        return Usage(
            uncached_input=self.uncached_input + other.uncached_input,
            cached_input=self.cached_input + other.cached_input,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            calls=self.calls + other.calls,
            dollars=dollars,
            estimated=self.estimated or other.estimated,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptKey:
    """What makes two attempts the same measurement; a re-scoring uses a new `replicate`.

    `harness` and `task_digest` are content hashes, `model` is the pinned model with its
    parameters, as the gateway names it.
    """

    harness: str
    task: str
    task_digest: str
    model: str
    index: int
    replicate: int = 0

    def __str__(self) -> str:
        return (
            f"{self.harness[:16]}/{self.task}@{self.task_digest[:12]}/{self.model}"
            f"/{self.replicate}.{self.index}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Timings:
    """Seconds of each phase: the wait for a slot, the start of the environment with the harness's
    setup, the harness, and its verifier. Latency is `agent_s` alone."""

    queued_s: float = 0.0
    setup_s: float = 0.0
    agent_s: float = 0.0
    verifier_s: float = 0.0

    @property
    def slot_s(self) -> float:
        """Seconds for which the attempt takes a slot."""
        return self.setup_s + self.agent_s + self.verifier_s


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The record of one attempt.

    `reward` is a finite number in [0, 1], or None where the attempt is missing (an infrastructure
    status). `flags` name signs of reward hacking; an attempt with one that is `telling` scores 0,
    the others (``tried-…``) say what it reached for in vain. `detail` is the
    reason in words; `trace` the content hash of the stored trace.
    """

    key: AttemptKey
    status: Status
    reward: float | None
    resolved: bool = False
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    trace: str = ""
    flags: tuple[str, ...] = ()
    detail: str = ""
    tries: int = 1

    def __post_init__(self) -> None:
        """Refuse rewards that are not rewards."""
        if self.reward is not None and not is_reward(self.reward):
            raise ValueError(f"reward {self.reward!r} is not a finite number in [0, 1]")
        if (self.reward is None) != self.status.is_infrastructure:
            raise ValueError(f"status {self.status} does not go with reward {self.reward!r}")

    @property
    def is_valid(self) -> bool:
        """Whether the attempt says something about the harness."""
        return not self.status.is_infrastructure

    @property
    def latency_s(self) -> float:
        """Seconds of the agent phase only."""
        return self.timings.agent_s


def is_telling(flag: str) -> bool:
    """Whether a flag costs the attempt its reward."""
    return not flag.startswith(TRIED)


def is_reward(value: object) -> bool:
    """Whether a value may be a reward: a finite number in [0, 1], and no boolean."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and 0.0 <= value <= 1.0
