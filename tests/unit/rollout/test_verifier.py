"""The reward files, read by Harbor's rules."""

from __future__ import annotations

import pytest

from milo.core.ports import Exit
from milo.core.tree import File, FileTree
from milo.rollout.verifier import judged, read_reward, runnable


def logs(**files: str) -> FileTree:
    return FileTree.of_texts({f"verifier/reward.{name}": text for name, text in files.items()})


@pytest.mark.parametrize(
    ("files", "reward"),
    [
        ({"txt": "1"}, 1.0),
        ({"txt": " 0.25\n"}, 0.25),
        ({"json": '{"reward": 0.5, "speed": 1}'}, 0.5),
        ({"json": '{"only": 1}'}, 1.0),
        ({"json": '{"a": 1, "b": 0}'}, 0.5),
        ({"json": '{"reward": 0}', "txt": "1"}, 0.0),
    ],
)
def test_a_reward_is_read_and_json_wins(files: dict[str, str], reward: float) -> None:
    assert read_reward(logs(**files)) == (reward, "")


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"txt": ""},
        {"txt": "nan"},
        {"txt": "inf"},
        {"txt": "1.5"},
        {"txt": "-0.1"},
        {"txt": "yes"},
        {"json": ""},
        {"json": "1"},
        {"json": "{}"},
        {"json": "[1]"},
        {"json": '{"reward": true}'},
        {"json": '{"reward": null}'},
        {"json": '{"reward": NaN}'},
        {"json": '{"reward": 1e999}'},
        {"json": '{"reward": {"deep": 1}}'},
        {"json": '{"reward": 1, "more": "text"}'},
        {"json": '{"reward": 2}'},
        {"json": "[" * 100_000},
        {"json": "nothing", "txt": "1"},
        {"txt": "1" * 100_000},
    ],
)
def test_what_is_no_reward_is_missing_with_a_reason(files: dict[str, str]) -> None:
    reward, detail = read_reward(logs(**files))
    assert reward is None
    assert detail


@pytest.mark.parametrize(
    "files",
    [
        {"txt": "nan"},
        {"txt": "inf"},
        {"txt": "1.5"},
        {"txt": "-0.1"},
        {"json": '{"reward": NaN}'},
        {"json": '{"reward": 1e999}'},
        {"json": '{"reward": 2}'},
        {"json": '{"a": 1, "b": -Infinity}'},
    ],
)
def test_a_number_that_is_no_reward_was_made_by_what_is_judged(files: dict[str, str]) -> None:
    said = judged(Exit(code=0, seconds=1), logs(**files))
    assert (said.reward, said.impossible) == (None, True)
    late = judged(Exit(code=137, seconds=1, limit="time"), logs(**files))
    assert not late.impossible, "a verifier that was cut says nothing of the harness"


@pytest.mark.parametrize("files", [{}, {"txt": "yes"}, {"json": '{"reward": true}'}])
def test_what_is_no_number_says_nothing_of_the_harness(files: dict[str, str]) -> None:
    assert not judged(Exit(code=0, seconds=1), logs(**files)).impossible


def test_a_declared_range_is_kept_as_its_share() -> None:
    span = (-1.0, 3.0)
    assert read_reward(logs(txt="1"), span) == (0.5, "")
    assert read_reward(logs(txt="3"), span) == (1.0, "")
    assert read_reward(logs(txt="-1"), span) == (0.0, "")
    reward, detail = read_reward(logs(txt="3.5"), span)
    assert reward is None and "[-1, 3]" in detail


def test_a_verifier_that_ran_out_of_time_gave_no_reward_even_if_it_wrote_one() -> None:
    said = judged(Exit(code=137, seconds=600.04, limit="time"), logs(txt="1"))
    assert said.reward is None
    assert "600.0 s" in said.detail


def test_the_exit_code_of_the_verifier_is_ignored() -> None:
    said = judged(Exit(code=3, seconds=1, stdout="private", stderr=" too"), logs(txt="1"))
    assert said.reward == 1.0
    assert (said.output, said.report) == ("private too", "")


def test_the_report_is_public_and_bounded() -> None:
    files = FileTree.of_texts({"verifier/reward.txt": "0", "verifier/report.txt": "w" * 9000})
    assert len(judged(Exit(code=0, seconds=1), files).report) == 4000


def test_the_test_script_becomes_executable_and_nothing_else_changes() -> None:
    tests = FileTree.of_texts({"test.sh": "#!/bin/sh\n", "data": "1"})
    assert runnable(tests)["test.sh"] == File(b"#!/bin/sh\n", True)
    assert runnable(tests)["data"] == tests["data"]
    assert runnable(runnable(tests)) == runnable(tests)
