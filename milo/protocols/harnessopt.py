"""HarnessOpt-Bench as a way to score a search method (SPEC §7).

The method starts from one pinned seed and nominates one candidate, here the frozen winner. Both
are scored on the held-out split in K rounds; the row is the normalised gain with its resolution
band. The band takes two rounds of the same candidate as two scorings of it, so it costs nothing
beside the rounds themselves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from milo.core.errors import RunError
from milo.protocols.caps import Account
from milo.protocols.entries import Entry, Scored
from milo.protocols.gains import is_resolved, normalised_gain, resolution_band

ROUNDS = 3
SPLIT_SHARES = (1, 2, 2)
"""Development, validation and test as 20/40/40."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HarnessOptRow:
    """One search under the protocol. Scores and gains are shares; `band` is None where the rounds
    are fewer than two. `exceeded` names caps that were not kept: such a row does not count."""

    method: str
    run: str
    suite: str
    model: str
    cases: int
    rounds: int
    seed: str
    seed_score: float
    nominated: str
    nominated_score: float
    gain: float
    band: float | None
    passes: Mapping[str, float]
    calls: Mapping[str, int]
    target_tokens: int
    optimizer_tokens: int
    exceeded: tuple[str, ...]

    @property
    def is_resolved(self) -> bool:
        """Whether the gain differs from none by more than the band."""
        return self.band is not None and is_resolved(self.gain, 0.0, self.band)


def harnessopt_row(entry: Entry, account: Account, rounds: int = ROUNDS) -> HarnessOptRow:
    """The row of a finished run whose winner and seed are scored on its test split.

    Raises `RunError` for more than one seed, or cases without a valid attempt.
    """
    if len(entry.seeds) != 1:
        raise RunError(f"run {entry.run}", "one pinned seed", f"{len(entry.seeds)}")
    (seed,) = entry.seeds
    base, best = _score(entry, seed, rounds), _score(entry, entry.winner, rounds)
    cost = entry.cost
    return HarnessOptRow(
        method=entry.method,
        run=entry.run,
        suite=entry.suite,
        model=entry.model,
        cases=len(entry.tasks),
        rounds=rounds,
        seed=seed.name,
        seed_score=base,
        nominated=entry.winner.candidate,
        nominated_score=best,
        gain=normalised_gain(best, base),
        band=_band((seed, entry.winner), base, rounds),
        passes={split: account.passes(split) for split in account.sizes},
        calls=dict(account.calls),
        target_tokens=account.tokens,
        optimizer_tokens=cost.optimizer_tokens,
        exceeded=account.exceeded(),
    )


def round_scores(scored: Scored, rounds: int) -> list[dict[tuple[str, str], float]]:
    """The rewards of each round by case: round r is every case's r-th attempt."""
    found: list[dict[tuple[str, str], float]] = [{} for _ in range(rounds)]
    for case, outcomes in scored.outcomes.items():
        for outcome in outcomes:
            if outcome.reward is not None and outcome.key.index < rounds:
                found[outcome.key.index][case] = outcome.reward
    return found


def _score(entry: Entry, scored: Scored, rounds: int) -> float:
    """E(H): the mean over cases of their mean over the rounds that are valid."""
    by_case: dict[tuple[str, str], list[float]] = {}
    for one in round_scores(scored, rounds):
        for case, reward in one.items():
            by_case.setdefault(case, []).append(reward)
    missing = set(entry.tasks) - {task for task, _ in by_case}
    if missing:
        raise RunError(
            f"{scored.candidate} of run {entry.run}",
            f"a valid attempt on each of {len(entry.tasks)} held-out cases",
            f"none on {len(missing)} of them ({min(missing)} first)",
        )
    return _mean([_mean(rewards) for rewards in by_case.values()])


def _band(candidates: Sequence[Scored], seed_score: float, rounds: int) -> float | None:
    twice = [
        pair for scored in candidates for pair in _scorings(round_scores(scored, rounds)) if pair
    ]
    if not twice or seed_score >= 1.0:
        return None
    return resolution_band(twice, seed_score, held_out_with=rounds)


def _scorings(
    rounds: Sequence[Mapping[tuple[str, str], float]],
) -> list[tuple[float, float]]:
    """Every two rounds of a candidate as two scorings, over the cases that both have."""
    pairs = []
    for a, b in itertools.combinations(rounds, 2):
        shared = sorted(a.keys() & b.keys())
        if shared:
            pairs.append((_mean([a[c] for c in shared]), _mean([b[c] for c in shared])))
    return pairs


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
