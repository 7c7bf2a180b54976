"""A search under HarnessOpt-Bench and under Evo-Bench: its row, from hand-made runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from protocol_scene import entry, scored

from milo.core.attempt import Usage
from milo.core.errors import RunError
from milo.core.events import CandidateProposed, CandidateScored, Change
from milo.core.fitness import TaskScore
from milo.core.lineage import Lineage
from milo.protocols.caps import Account, ProtocolCaps
from milo.protocols.entries import Entry, SearchCost
from milo.protocols.evobench import Scale, evobench_row, visible_scores
from milo.protocols.harnessopt import harnessopt_row
from milo.protocols.rows import evobench_text, harnessopt_text

SEED = scored("bare", [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
BEST = scored("best", [[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
SIZES = {"search": 4, "validation": 4}
SCALE = Scale(
    domains={
        "t0": "search",
        "t1": "search",
        "t2": "office",
        "t3": "general",
        "s0": "search",
        "s1": "office",
    },
    weights={"search": 2.0, "office": 2.0, "general": 1.0},
)


def account(**caps: float) -> Account:
    used = Account(ProtocolCaps(**caps), SIZES)  # type: ignore[arg-type]
    used.note("search", attempts=12, tokens=900, calls=3)
    return used


def lineage(*scores: Mapping[str, float]) -> Lineage:
    """A seed and its children, each with search scores by task."""
    made = Lineage()
    for i, row in enumerate(scores):
        name = f"i1.{i}"
        made.apply(
            CandidateProposed(
                island="i1",
                candidate=name,
                round=i,
                parents=("i1.0",) if i else (),
                harness=name,
                mutator="m",
                change=Change(title="t"),
            )
        )
        made.apply(
            CandidateScored(
                island="i1",
                candidate=name,
                split="search",
                scores={
                    t: TaskScore(n=1, reward=r, resolved=int(r), tokens=1, latency_s=1)
                    for t, r in row.items()
                },
            )
        )
    return made


def evo_entry(winner: Sequence[Sequence[float]], **changes: object) -> Entry:
    cost = SearchCost(attempts=9, usage=Usage(), hours=2.0, optimizer_calls=31)
    made = entry("milo", scored("w", winner), [SEED], cost=cost)
    return replace(made, **changes)  # type: ignore[arg-type]


# --- HarnessOpt-Bench -----------------------------------------------------------------------------


def test_the_gain_is_normalised_by_the_seeds_headroom() -> None:
    row = harnessopt_row(entry("milo", BEST, [SEED]), account())
    assert row.seed_score == pytest.approx(5 / 12)
    assert row.nominated_score == pytest.approx(11 / 12)
    assert row.gain == pytest.approx((11 - 5) / (12 - 5))
    assert row.passes == {"search": 3.0, "validation": 0.0} and row.target_tokens == 900


def test_the_band_comes_from_scoring_the_same_candidate_in_other_rounds() -> None:
    """Rounds score 2/4, 1/4, 2/4 (seed) and 4/4, 3/4, 4/4: four of six pairs differ by 1/4."""
    row = harnessopt_row(entry("milo", BEST, [SEED]), account())
    assert row.band == pytest.approx(0.25 / 3**0.5 / (1 - 5 / 12))
    assert row.is_resolved
    text = harnessopt_text(row)
    assert "the gain is resolved" in text and "K = 3" in text


def test_a_gain_within_the_band_is_unresolved() -> None:
    row = harnessopt_row(entry("milo", SEED, [SEED]), account())
    assert row.gain == 0.0 and not row.is_resolved
    assert "unresolved: not more than the band" in harnessopt_text(row)


def test_one_round_tells_no_band() -> None:
    row = harnessopt_row(entry("milo", BEST, [SEED]), account(), rounds=1)
    assert row.band is None and "one round tells no band" in harnessopt_text(row)


def test_attempts_beyond_the_rounds_are_not_counted() -> None:
    row = harnessopt_row(entry("milo", BEST, [SEED]), account(), rounds=2)
    assert row.nominated_score == pytest.approx(7 / 8)


def test_a_row_that_broke_a_cap_says_that_it_does_not_count() -> None:
    row = harnessopt_row(entry("milo", BEST, [SEED]), account(passes=2.0))
    assert row.exceeded == ("3.00 case passes on search, 2 are allowed",)
    assert "does not count" in harnessopt_text(row)


def test_a_case_without_a_valid_attempt_is_no_zero() -> None:
    holed = scored("best", [[1.0], [None], [1.0], [1.0]])
    with pytest.raises(RunError, match="valid attempt on each of 4 held-out cases"):
        harnessopt_row(entry("milo", holed, [SEED]), account())


@pytest.mark.parametrize("seeds", [[], [SEED, BEST]])
def test_a_run_needs_exactly_one_seed(seeds: list[object]) -> None:
    with pytest.raises(RunError, match="one pinned seed"):
        harnessopt_row(entry("milo", BEST, seeds), account())  # type: ignore[arg-type]
    with pytest.raises(RunError, match="one common seed"):
        evobench_row(entry("milo", BEST, seeds), lineage({"s0": 1.0}), SCALE)  # type: ignore[arg-type]


# --- Evo-Bench ------------------------------------------------------------------------------------


def test_overall_weighs_domains_and_not_tasks() -> None:
    found = evobench_row(
        evo_entry([[1.0], [0.0], [1.0], [0.0]]), lineage({"s0": 0.0, "s1": 0.0}), SCALE
    )
    assert found.domains == {"search": 50.0, "office": 100.0, "general": 0.0}
    assert found.overall == pytest.approx((2 * 50 + 2 * 100) / 5)
    assert found.seed_overall == pytest.approx((2 * 100 / 6 + 2 * 100 + 100 / 3) / 5)
    assert found.gain == pytest.approx(found.overall - found.seed_overall)
    assert found.steps == 31


def test_a_domain_of_every_attempt_counts_only_tasks_that_never_fail() -> None:
    winner = [[1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]
    strict = replace(SCALE, every_attempt=("search",))
    plain = evobench_row(evo_entry(winner), lineage({"s0": 0.0}), SCALE)
    hard = evobench_row(evo_entry(winner), lineage({"s0": 0.0}), strict)
    assert (plain.domains["search"], hard.domains["search"]) == (75.0, 50.0)


def test_anytime_value_carries_the_best_over_the_whole_budget_with_the_seed_as_floor() -> None:
    seen = lineage({"s0": 1.0, "s1": 0.0}, {"s0": 0.0, "s1": 0.0}, {"s0": 1.0, "s1": 1.0})
    assert visible_scores(seen, SCALE) == [50.0, 0.0, 100.0]
    row = evobench_row(evo_entry([[1.0]] * 4), seen, SCALE, iterations=4)
    assert row.iterations == 2
    assert row.anytime == pytest.approx((50 + 100 + 100 + 100) / 4)


def test_a_run_without_an_iteration_keeps_the_seeds_value() -> None:
    row = evobench_row(evo_entry([[1.0]] * 4), lineage({"s0": 1.0, "s1": 0.0}), SCALE)
    assert row.iterations == 0 and row.anytime == 50.0
    assert "0 of 20 iterations" in evobench_text(row)


def test_limits_that_were_not_kept_are_named() -> None:
    many = lineage(*({"s0": 1.0} for _ in range(4)))
    row = evobench_row(evo_entry([[1.0]] * 4), many, SCALE, iterations=2, hours=1.0)
    assert row.exceeded == ("3 iterations, 2 are allowed", "2.0 hours, 1 are allowed")
    assert evobench_text(row).count("does not count") == 2


def test_a_held_out_task_without_a_valid_attempt_is_no_zero() -> None:
    with pytest.raises(RunError, match="none on 1 of them"):
        evobench_row(evo_entry([[1.0], [None], [1.0], [1.0]]), lineage({"s0": 1.0}), SCALE)


def test_a_weighted_domain_without_tasks_is_refused() -> None:
    more = replace(SCALE, weights={**SCALE.weights, "coding": 1.0})
    with pytest.raises(RunError, match="none of coding"):
        evobench_row(evo_entry([[1.0]] * 4), lineage({"s0": 1.0}), more)
