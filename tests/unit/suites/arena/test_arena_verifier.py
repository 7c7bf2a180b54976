"""The verifier's script: rewards, the record's line, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from milo.core.objective import objective_in
from milo.suites.arena.problems.packing import unpacked
from milo.suites.arena.tasks import published
from milo.suites.arena.verifier.check import judge, text_in

NAME = "erdos-min-overlap"
HAUGLAND, BETTER = 0.38092685343308713, 0.3808753232177187


def expected(**changes: object) -> dict[str, object]:
    told = {"problem": NAME, "start": HAUGLAND, "target": 0.3808568, "most": 1000}
    return {**told, **changes}


def text(name: str) -> str:
    return json.dumps({"values": published(name).tolist()})


def test_a_gain_is_a_share_of_the_target_and_stands_in_the_report_in_full() -> None:
    reward, report, line = judge(expected(), text("erdos_ttt_600"))
    assert reward == pytest.approx((HAUGLAND - BETTER) / (HAUGLAND - 0.3808568))
    result = objective_in(report)
    assert result is not None
    assert result.problem == NAME
    assert result[1:] == (BETTER, HAUGLAND, 0.3808568)
    held = unpacked(line)
    assert held is not None
    assert (held.problem, held.value, len(held.construction)) == (NAME, BETTER, 600)


def test_a_record_holds_the_numbers_as_they_were_given() -> None:
    """Brought to half their sum, they could not be read a second time, and the record were lost."""
    given = [0.616, 0.041, 0.422, 0.191, 0.27]
    reward, _, line = judge(expected(start=0.7), json.dumps({"values": given}))
    assert reward > 0
    held = unpacked(line)
    assert held is not None
    assert held.construction.tolist() == given


def test_the_start_itself_and_what_is_worse_earn_nothing_and_the_target_earns_all() -> None:
    assert judge(expected(), text("erdos_haugland_51"))[0] == 0.0
    assert judge(expected(start=0.38087), text("erdos_haugland_51"))[0] == 0.0
    assert judge(expected(target=0.3809), text("erdos_ttt_600"))[0] == 1.0


@pytest.mark.parametrize("given", ["", "[]", '{"values": [NaN]}', '{"values": [1.0, 0.0, 0.0]}'])
def test_what_is_refused_earns_nothing_and_leaves_no_construction(given: str) -> None:
    reward, report, line = judge(expected(), given)
    assert (reward, line) == (0.0, "")
    assert report.startswith("rejected: ")
    assert objective_in(report) is None


def test_a_function_longer_than_the_task_allows_is_refused() -> None:
    assert "at most 500" in judge(expected(most=500), text("erdos_ttt_600"))[1]


def test_a_link_or_a_missing_file_is_no_construction(tmp_path: Path) -> None:
    assert text_in(tmp_path) == ""
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "construction.json").symlink_to(tmp_path / "secret")
    assert text_in(tmp_path) == ""
