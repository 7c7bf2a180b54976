"""Harbor tasks in steps: read in order, layered, and refused by file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from milo.core.errors import TaskError
from milo.core.task import StepReward
from milo.suites.harbor import load_task

TOML = """
multi_step_reward_strategy = "final"
[agent]
timeout_sec = 50
[verifier.env]
SHARED = "1"
[[steps]]
name = "first"
min_reward = 0.5
[steps.agent]
timeout_sec = 20
[[steps]]
name = "second"
[steps.verifier]
timeout_sec = 30
[steps.verifier.env]
OWN = "2"
[steps.healthcheck]
command = "true"
[steps.min_reward]
reward = 1
speed = 0.2
"""


def stepwise(root: Path, toml: str = TOML, **changes: str | None) -> Path:
    files: dict[str, str | None] = {
        "task.toml": toml,
        "environment/Dockerfile": "FROM debian:12\nWORKDIR /workspace\n",
        "tests/test.sh": "#!/bin/sh\n# shared\n",
        "tests/helper.sh": "shared",
        "steps/first/instruction.md": "Do the first.\n",
        "steps/first/workdir/setup.sh": "echo set up\n",
        "steps/first/solution/solve.sh": "true\n",
        "steps/second/instruction.md": "Do the second.\n",
        "steps/second/tests/helper.sh": "own",
        "steps/second/solution/solve.sh": "true\n",
    }
    files |= changes
    folder = root / "in-steps"
    for path, text in files.items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    return folder


def test_steps_are_read_in_their_order(tmp_path: Path) -> None:
    task = load_task(stepwise(tmp_path))
    first, second = task.steps
    assert (first.name, second.name) == ("first", "second")
    assert task.instruction == "Do the first.\n\nDo the second."
    assert task.step_reward is StepReward.FINAL
    assert (first.agent_timeout_s, second.agent_timeout_s) == (20, 50)
    assert (first.verifier_timeout_s, second.verifier_timeout_s) == (600, 30)
    assert (first.min_reward, second.min_reward) == ({"reward": 0.5}, {"reward": 1, "speed": 0.2})
    assert second.verifier_env == {"OWN": "2"}
    assert task.judging.env == {"SHARED": "1"}
    assert second.healthcheck is not None
    assert list(first.files) == ["setup.sh"]
    assert task.has_solution


def test_a_steps_tests_lie_over_the_tasks(tmp_path: Path) -> None:
    first, second = load_task(stepwise(tmp_path)).steps
    assert first.tests.text("helper.sh") == "shared"
    assert second.tests.text("helper.sh") == "own"
    assert "shared" in second.tests.text("test.sh")


def test_a_step_without_a_solution_leaves_the_task_unproved(tmp_path: Path) -> None:
    task = load_task(stepwise(tmp_path, **{"steps/second/solution/solve.sh": None}))
    assert not task.has_solution


def test_the_hash_of_a_task_follows_its_steps_but_not_their_solutions(tmp_path: Path) -> None:
    plain = load_task(stepwise(tmp_path / "a"))
    harder = load_task(stepwise(tmp_path / "b", TOML.replace("min_reward = 0.5", "")))
    solved = load_task(stepwise(tmp_path / "c", **{"steps/first/solution/solve.sh": "false\n"}))
    assert plain.digest == solved.digest
    assert plain.digest != harder.digest


@pytest.mark.parametrize(
    ("toml", "changes", "words"),
    [
        ("[[steps]]\nname = 'a'\n", {}, "steps/a/instruction.md"),
        ("[[steps]]\nname = '../a'\n", {}, r"'steps\[0\].name': expected a folder's name"),
        ("[[steps]]\nname = 'first'\n[[steps]]\nname = 'First'\n", {}, "no other step has"),
        ("[[steps]]\nnam = 'a'\n", {}, r"'steps\[0\].nam': expected 'name'"),
        ("", {}, "'steps': expected the steps that the folder steps/ holds"),
        ("multi_step_reward_strategy = 'best'\n", {}, "one of mean, final"),
        (TOML, {"tests/test.sh": None}, "steps/first/tests/test.sh or tests/test.sh"),
        (TOML.replace("min_reward = 0.5", "min_reward = '1'"), {}, r"'steps\[0\].min_reward'"),
    ],
)
def test_a_broken_step_is_refused_by_key(
    tmp_path: Path, toml: str, changes: dict[str, str | None], words: str
) -> None:
    with pytest.raises(TaskError, match=words):
        load_task(stepwise(tmp_path, toml, **changes))


@pytest.mark.parametrize(
    ("rows", "need"),
    [
        ("[steps.agent]\nuser = 'bob'\n", "step-users"),
        ("[steps.agent]\nnetwork_mode = 'public'\n", "step-network"),
        ("[steps.verifier]\nenvironment_mode = 'separate'\n", "mixed-verifiers"),
    ],
)
def test_what_a_step_asks_for_beyond_the_task_is_named(
    tmp_path: Path, rows: str, need: str
) -> None:
    toml = f"[[steps]]\nname = 'first'\n{rows}"
    assert need in load_task(stepwise(tmp_path, toml)).needs
