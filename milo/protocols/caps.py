"""What a protocol lets a search method see and spend: disclosure levels, and caps with an account.

HarnessOpt-Bench (§3.1): development shows inputs, per-case outcomes and traces, validation an
aggregate score only, test nothing; evaluation calls and case passes are capped for each partition,
the target model's tokens over all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from milo.core.attempt import Outcome
from milo.core.errors import BudgetExceeded
from milo.core.events import CandidateScored, Record
from milo.core.fitness import Evaluation, TaskScore


class Disclosure(StrEnum):
    """How much of an evaluation a search method may see."""

    FULL = "full"
    AGGREGATE = "aggregate"
    NONE = "none"


POLICY: Mapping[str, Disclosure] = {
    "search": Disclosure.FULL,
    "validation": Disclosure.AGGREGATE,
    "test": Disclosure.NONE,
}
"""HarnessOpt-Bench's levels for our splits; its development partition is our search split."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Disclosed:
    """What is shown of an evaluation: the mean score, the cases, and whether traces may be read."""

    score: float | None = None
    cases: Mapping[str, TaskScore] = field(default_factory=dict)
    traces: bool = False


def disclose(evaluation: Evaluation, level: Disclosure) -> Disclosed:
    """An evaluation as a level shows it; without a scored case there is nothing to show."""
    if level is Disclosure.NONE or not evaluation:
        return Disclosed()
    score = math.fsum(case.reward for case in evaluation.values()) / len(evaluation)
    if level is Disclosure.AGGREGATE:
        return Disclosed(score=score)
    return Disclosed(score=score, cases=dict(evaluation), traces=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProtocolCaps:
    """Caps on a search; None does not bind. A case pass is one attempt on every case."""

    calls: int | None = 100
    passes: float | None = 4.0
    tokens: int | None = None


class Account:
    """What a search has used, partition by partition. One owner.

    `sizes` is the number of cases of each partition that may be evaluated at all.
    """

    def __init__(self, caps: ProtocolCaps, sizes: Mapping[str, int]) -> None:
        self.caps = caps
        self.sizes = dict(sizes)
        self.calls = dict.fromkeys(sizes, 0)
        self.attempts = dict.fromkeys(sizes, 0)
        self.tokens = 0

    def passes(self, split: str) -> float:
        """Case passes used on a partition."""
        return self.attempts[split] / max(1, self.sizes[split])

    def charge(self, split: str, *, attempts: int, tokens: int = 0, calls: int = 1) -> None:
        """Pay for an evaluation; raises `BudgetExceeded`, and pays nothing, where a cap refuses."""
        reason = self._refusal(split, attempts=attempts, tokens=tokens, calls=calls)
        if reason:
            raise BudgetExceeded(reason)
        self._add(split, attempts=attempts, tokens=tokens, calls=calls)

    def note(self, split: str, *, attempts: int = 0, tokens: int = 0, calls: int = 0) -> None:
        """Count what was used already, whatever the caps say; see `exceeded`."""
        self._add(split, attempts=attempts, tokens=tokens, calls=calls)

    def exceeded(self) -> tuple[str, ...]:
        """The caps that what was used goes beyond, in words."""
        reasons = [self._refusal(split) for split in self.sizes]
        return tuple(dict.fromkeys(reason for reason in reasons if reason))

    def _add(self, split: str, *, attempts: int, tokens: int, calls: int) -> None:
        self.calls[split] += calls
        self.attempts[split] += attempts
        self.tokens += tokens

    def _refusal(self, split: str, *, attempts: int = 0, tokens: int = 0, calls: int = 0) -> str:
        if split not in self.sizes:
            return f"the {split} split may not be evaluated during the search"
        caps = self.caps
        wanted = self.calls[split] + calls
        if caps.calls is not None and wanted > caps.calls:
            return f"{wanted} evaluation calls on {split}, {caps.calls} are allowed"
        passes = (self.attempts[split] + attempts) / max(1, self.sizes[split])
        if caps.passes is not None and passes > caps.passes + 1e-9:
            return f"{passes:.2f} case passes on {split}, {caps.passes:g} are allowed"
        if caps.tokens is not None and self.tokens + tokens > caps.tokens:
            return f"{self.tokens + tokens} target tokens, {caps.tokens} are allowed"
        return ""


def audited(
    account: Account,
    records: Iterable[Record],
    outcomes: Iterable[Outcome],
    splits: Mapping[str, str],
) -> Account:
    """The account with a finished run's use of it: one call for every recorded evaluation, one
    attempt for every outcome on a task of an accounted split (`splits`: task -> split)."""
    for record in records:
        event = record.event
        if isinstance(event, CandidateScored) and event.split in account.sizes:
            account.note(event.split, calls=1)
    for outcome in outcomes:
        split = splits.get(outcome.key.task, "")
        if split in account.sizes:
            account.note(split, attempts=1, tokens=outcome.usage.tokens)
    return account
