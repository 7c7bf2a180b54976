"""Terminal-Bench 1 folders: read into the same tasks, judged by what pytest says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from milo.core.errors import TaskError
from milo.suites.terminal_bench import load_task

YAML = """
instruction: |-
  Write hello.txt.
difficulty: easy
category: files
parser_name: pytest
max_agent_timeout_sec: 90
max_test_timeout_sec: 45.5
"""
COMPOSE = """
services:
  client:
    build: {dockerfile: Dockerfile}
    command: ["sh", "-c", "sleep infinity"]
    environment:
      - TEST_DIR=${T_BENCH_TEST_DIR}
      - MODE=slow
    volumes:
      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}
"""


def folder_of(root: Path, **changes: str | None) -> Path:
    files: dict[str, str | None] = {
        "task.yaml": YAML,
        "Dockerfile": "FROM debian:12\nWORKDIR /app\nCOPY start.txt ./\n",
        "start.txt": "start",
        "docker-compose.yaml": COMPOSE,
        "run-tests.sh": "#!/bin/bash\nuv run pytest $TEST_DIR/test_outputs.py -rA\n",
        "tests/test_outputs.py": "def test_hello(): ...\n",
        "solution.sh": "#!/bin/bash\necho hello > hello.txt\n",
    }
    files |= changes
    folder = root / "hello"
    for path, text in files.items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    return folder


def test_a_task_is_read_with_its_limits_and_variables(tmp_path: Path) -> None:
    task = load_task(folder_of(tmp_path))
    assert (task.id, task.instruction, task.family) == ("hello", "Write hello.txt.", "files")
    assert (task.limits.agent_timeout_s, task.limits.verifier_timeout_s) == (90, 45.5)
    assert task.env == {"TEST_DIR": "/tests", "MODE": "slow"}
    assert (task.needs, task.setting.workdir) == (frozenset(), "/app")
    assert list(task.workspace) == ["start.txt"]
    assert list(task.tests) == ["run-tests.sh", "test.sh", "test_outputs.py"]
    assert list(task.solution) == ["solve.sh"]


def test_solution_and_tests_are_not_part_of_the_image(tmp_path: Path) -> None:
    dockerfile = "FROM debian:12\nWORKDIR /app\nCOPY . .\n"
    task = load_task(folder_of(tmp_path, Dockerfile=dockerfile))
    assert task.setting.image is not None
    assert list(task.setting.image.context) == ["Dockerfile", "start.txt"]
    assert list(task.workspace) == ["start.txt"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"task.yaml": "a: [\n"}, "task.yaml: expected valid YAML"),
        ({"task.yaml": "- a\n"}, "a table of keys, found list"),
        ({"task.yaml": YAML.replace("pytest", "swebench")}, "'parser_name': expected pytest"),
        ({"task.yaml": YAML + "max_agent_timeout: 3\n"}, "'max_agent_timeout': expected 'max_ag"),
        ({"task.yaml": "difficulty: easy\n"}, "'instruction': expected an instruction"),
        ({"run-tests.sh": None}, "the script run-tests.sh"),
        ({"Dockerfile": None}, "a file Dockerfile"),
        ({"docker-compose.yaml": "services: 3\n"}, "'services': expected a table"),
    ],
)
def test_a_broken_task_is_refused_by_file_and_key(
    tmp_path: Path, changes: dict[str, str | None], words: str
) -> None:
    with pytest.raises(TaskError, match=words):
        load_task(folder_of(tmp_path, **changes))


@pytest.mark.parametrize(
    "compose",
    [
        COMPOSE + "  db: {image: postgres}\n",
        COMPOSE.replace("    command", "    privileged: true\n    command"),
        COMPOSE.replace("- ${T_BENCH_TASK_LOGS_PATH}:", "- ./:"),
        COMPOSE.replace("MODE=slow", "MODE=${HOST_MODE}"),
    ],
)
def test_more_than_one_plain_container_is_a_need(tmp_path: Path, compose: str) -> None:
    assert "compose" in load_task(folder_of(tmp_path, **{"docker-compose.yaml": compose})).needs


def test_the_oldest_form_keeps_its_instruction_in_a_list(tmp_path: Path) -> None:
    text = "descriptions:\n  - key: base\n    description: Do it.\n"
    assert load_task(folder_of(tmp_path, **{"task.yaml": text})).instruction == "Do it."


HEAD = "=========== short test summary info ==========="


@pytest.mark.parametrize(
    ("said", "reward"),
    [
        (f"{HEAD}\nPASSED ../tests/t.py::test_a\nPASSED ../tests/t.py::test_b\n== 2 passed ==", 1),
        (f"{HEAD}\nPASSED t.py::test_a\nSKIPPED [1] t.py:3: no\nXFAIL t.py::test_c\n", 1),
        (f"{HEAD}\nPASSED t.py::test_a\nFAILED t.py::test_b - assert 1 == 2\n", 0),
        (f"{HEAD}\nPASSED t.py::test_a\nERROR t.py::test_b - oops\n", 0),
        (f"{HEAD}\nXPASS t.py::test_a\n", 0),
        (f"PASSED t.py::test_a\n{HEAD}\n== 0 passed ==\n", 0),
        ("bash: uv: command not found\n", 0),
        ("", 0),
    ],
)
def test_pytests_short_summary_decides(tmp_path: Path, said: str, reward: int) -> None:
    """The generated script itself runs, on folders below the test's own."""
    task = load_task(folder_of(tmp_path))
    logs = tmp_path / "logs"
    (logs / "verifier").mkdir(parents=True)
    (tmp_path / "said").write_text(said)
    put = {"run-tests.sh": f"cat {tmp_path}/said\n"}
    task.tests.with_texts(put).write_to(tmp_path / "tests")
    env = {**os.environ, "MILO_LOGS": str(logs), "MILO_TESTS": str(tmp_path / "tests")}
    script = tmp_path / "tests" / "test.sh"
    subprocess.run(["bash", script], check=True, capture_output=True, env=env)
    assert int((logs / "verifier" / "reward.txt").read_text()) == reward
