"""HarnessOpt-Bench's λ column, tiers and contrasts from its gain table."""

from __future__ import annotations

import pytest
from tables import numbers, table

from milo.protocols.gains import is_resolved, lss_lambda, mean_contrast, tiers

COMPETENT = ("OfficeQA", "BrowseComp-Plus", "Terminal-Bench")
BANDS = {"OfficeQA": 0.045, "BrowseComp-Plus": 0.066, "Terminal-Bench": 0.054, "GAIA": 0.035}
RESOLUTION = 0.058
ROWS = table("harnessopt_gains")
PRINTED = {row["model"]: row for row in table("harnessopt_lambda")}


def shared_grid() -> dict[str, dict[str, list[float]]]:
    return {
        row["model"]: {task: [gain] for task, gain in numbers(row, *COMPETENT).items()}
        for row in ROWS
        if row["harness"] == "opencode"
    }


def test_the_lambda_column_follows_from_the_gain_table_within_its_rounding() -> None:
    found = lss_lambda(shared_grid())
    printed = {model: float(row["lambda"]) for model, row in PRINTED.items()}
    assert found == pytest.approx(printed, abs=0.004)


def test_the_tiers_follow_from_the_lambdas_and_the_resolution() -> None:
    found = tiers({model: float(row["lambda"]) for model, row in PRINTED.items()}, RESOLUTION)
    assert found == {model: int(row["tier"]) for model, row in PRINTED.items()}


def test_changing_the_harness_moves_the_gain_by_as_much_as_the_text_says() -> None:
    groups = [
        [float(row[task]) for row in ROWS if row["model"] == model]
        for task in BANDS
        for model in PRINTED
    ]
    assert mean_contrast(groups) == pytest.approx(0.079, abs=0.005)


def test_the_weakest_configuration_is_unresolved_from_zero_where_the_text_says() -> None:
    weak = next(r for r in ROWS if r["harness"] == "codex" and r["model"] == "gpt-5.6-terra")
    for task in ("BrowseComp-Plus", "Terminal-Bench"):
        assert not is_resolved(float(weak[task]), 0.0, BANDS[task])


def test_the_strongest_captures_two_thirds_and_half_of_the_headroom() -> None:
    best = next(r for r in ROWS if r["harness"] == "opencode" and r["model"] == "claude-opus-5")
    assert float(best["OfficeQA"]) == pytest.approx(2 / 3, abs=0.05)
    assert float(best["BrowseComp-Plus"]) == pytest.approx(1 / 2, abs=0.05)
