"""DarwinX's averages and rates from its benchmarks' figures."""

from __future__ import annotations

import pytest
from tables import table

from milo.core.fitness import TaskScore, pass_at_k, resolution_rate

ROWS = {row["benchmark"]: row for row in table("darwinx")}


def solve_rate(solved: int, tasks: int) -> float:
    """pass@1 in percent, as our rates measure it."""
    evaluation = {
        f"t{i:04}": TaskScore(n=1, reward=i < solved, resolved=i < solved, tokens=1, latency_s=1)
        for i in range(tasks)
    }
    assert resolution_rate(evaluation, list(evaluation)).mean == pass_at_k(
        evaluation, list(evaluation)
    )
    return 100 * resolution_rate(evaluation, list(evaluation)).mean


@pytest.mark.parametrize(
    "row", [r for r in ROWS.values() if r["base"]], ids=lambda r: r["benchmark"]
)
def test_gains_are_evolved_less_base(row: dict[str, str]) -> None:
    assert float(row["evolved"]) - float(row["base"]) == pytest.approx(float(row["gain"]))


def test_the_average_gain_is_about_seventeen_points() -> None:
    gains = [float(row["gain"]) for row in ROWS.values()]
    assert round(sum(gains) / len(gains)) == 17


@pytest.mark.parametrize(
    "row", [r for r in ROWS.values() if r["solved"]], ids=lambda r: r["benchmark"]
)
def test_rates_follow_from_the_numbers_of_solved_tasks(row: dict[str, str]) -> None:
    found = solve_rate(int(row["solved"]), int(row["tasks"]))
    assert found == pytest.approx(float(row["evolved"]), abs=0.05)


def test_three_more_of_forty_one_tasks_are_the_held_out_gain() -> None:
    row = ROWS["TerminalWorld held-out"]
    assert solve_rate(28, 41) - solve_rate(25, 41) == pytest.approx(float(row["gain"]), abs=0.05)
    assert solve_rate(1, 41) == pytest.approx(2.4, abs=0.05)


def test_browser_use_is_beaten_by_the_stated_margin() -> None:
    row = ROWS["WebArena-Infinity"]
    assert float(row["evolved"]) - 86.1 == pytest.approx(6.9)
    assert float(row["evolved"]) - 69.3 == pytest.approx(23.7)
