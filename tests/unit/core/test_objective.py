"""The raw objective beside the reward: what a record's lines say, and the best so far over time."""

from __future__ import annotations

import pytest

from milo.core.objective import Objective, Step, objective_in, ratchet, steps_in


def low(value: float, start: float = 0.5) -> Objective:
    return Objective("p", value, start, 0.3)


def test_a_result_survives_its_line_to_the_last_bit() -> None:
    result = Objective("erdos-min-overlap", 0.1 + 0.2, 0.5, 1 / 3)
    assert objective_in(f"{result.line}\nmore words") == result


@pytest.mark.parametrize(
    "report",
    [
        "",
        "value 0.5",
        "objective p 0.5 0.6",
        "objective p 0.5 0.6 x",
        "objective p nan 0.6 0.4",
        "objective p 0.5 inf 0.4",
        "objective p 0.5 0.6 0.6",
        "rejected\nobjective p 0.5 0.6 0.4",
    ],
)
def test_a_report_without_a_sound_first_line_has_no_objective(report: str) -> None:
    assert objective_in(report) is None


def test_start_and_target_say_which_way_is_better() -> None:
    assert low(0.4).gain(over=0.45) == pytest.approx(0.05)
    assert Objective("p", 2.5, 2.0, 2.6).gain(over=2.4) == pytest.approx(0.1)


def test_printed_bests_are_read_and_other_lines_are_not() -> None:
    said = "p starts at 0.5\n0.10 0.49\n 1.0 0.4\n12 -3e-05\n2.5 0.x\n3.0 1e999\nends at 0.4\n"
    assert steps_in(said) == (Step(0.1, 0.49), Step(12.0, -3e-05))


def test_the_ratchet_begins_at_the_best_start_and_takes_only_what_is_better() -> None:
    course = ratchet(
        [
            (30.0, low(0.41), "c"),
            (10.0, low(0.44, start=0.6), "a"),
            (20.0, low(0.47), "b"),
            (40.0, low(0.41), "d"),
            (15.0, Objective("q", 2.0, 1.0, 3.0), "a"),
        ]
    )
    assert course["p"] == (Step(0.0, 0.5), Step(10.0, 0.44, "a"), Step(30.0, 0.41, "c"))
    assert course["q"] == (Step(0.0, 1.0), Step(15.0, 2.0, "a"))
    assert ratchet([]) == {}
