"""Evo-Bench's tables (its leaderboard, its policy ablation, its selection) by our formulas."""

from __future__ import annotations

import pytest
from tables import numbers, table

from milo.protocols.evolution import PAPER_WEIGHTS, overall

# Domain scores are printed to 0.1: Overall may be off by that half unit, and by its own.
ROUNDING = 0.05 + 0.05 + 1e-9
ROWS = table("evobench_leaderboard")
POLICIES = table("evobench_policies")
SEED = next(row for row in ROWS if row["evolver"] == "CodeAct")


def overall_of(row: dict[str, str]) -> float:
    return overall(numbers(row, *PAPER_WEIGHTS), PAPER_WEIGHTS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["evolver"])
def test_the_overall_column_follows_from_the_domain_columns(row: dict[str, str]) -> None:
    assert overall_of(row) == pytest.approx(float(row["overall"]), abs=ROUNDING)


@pytest.mark.parametrize("row", POLICIES, ids=lambda r: f"{r['policy']}/{r['evolver']}")
def test_the_overall_column_of_the_policy_ablation_follows_too(row: dict[str, str]) -> None:
    assert overall_of(row) == pytest.approx(float(row["overall"]), abs=ROUNDING)


def test_the_first_row_gives_the_printed_figure_exactly() -> None:
    assert f"{overall_of(ROWS[0]):.1f}" == "46.3"


@pytest.mark.parametrize("row", [r for r in ROWS if r["gain"]], ids=lambda r: r["evolver"])
def test_gains_are_over_the_seed_harness(row: dict[str, str]) -> None:
    gain = float(row["overall"]) - float(SEED["overall"])
    assert gain == pytest.approx(float(row["gain"]), abs=1e-6)


def test_the_ranking_is_by_overall() -> None:
    ranked = [overall_of(row) for row in ROWS if row["anytime"]]
    assert ranked == sorted(ranked, reverse=True)


def test_no_evolver_ends_above_what_its_best_validation_revision_promised() -> None:
    """AnytimeVal is on the validation suite, which the evolvers optimised for."""
    assert all(float(r["anytime"]) > float(r["overall"]) for r in ROWS if r["anytime"])


def test_the_suites_have_the_sizes_that_the_text_names() -> None:
    rows = [
        numbers(r, "candidates", "insensitive", "validation", "evaluation")
        for r in table("evobench_selection")
    ]
    assert sum(row["candidates"] for row in rows) == 2329
    assert sum(row["validation"] for row in rows) == 160
    assert sum(row["evaluation"] for row in rows) == 448
    backfilled = [
        row["validation"] + row["evaluation"] - (row["candidates"] - row["insensitive"])
        for row in rows
    ]
    assert max(backfilled) <= 0, "no source benchmark lacked sensitive tasks as a whole"
