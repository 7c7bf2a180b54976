"""What a `.dockerignore` keeps out of a build, as the engine's client would."""

from __future__ import annotations

from pathlib import Path

import pytest

from milo.core.errors import TaskError
from milo.suites.dockerignore import build_context, ignored
from milo.suites.folder import load_one

PATHS = (
    *("Dockerfile", ".dockerignore", "a.log", "d/a.log", "d/e/a.log", "README.md", "keep.md"),
    *("b2", "x[1].txt"),
)


@pytest.mark.parametrize(
    ("text", "kept_out"),
    [
        ("*.log", {"a.log"}),
        ("/a.log", {"a.log"}),
        ("**/*.log", {"a.log", "d/a.log", "d/e/a.log"}),
        ("d/", {"d/a.log", "d/e/a.log"}),
        ("d/**\n!d/e", {"d/a.log"}),
        ("*.md\n!README.md", {"keep.md"}),
        ("# no words\n\n  b?  ", {"b2"}),
        ("[a-c][0-9]", {"b2"}),
        ("x\\[1].txt", {"x[1].txt"}),
        ("**\n!b2\n!x*", set(PATHS) - {"Dockerfile", ".dockerignore", "b2", "x[1].txt"}),
        ("../b2\nDockerfile", set()),
    ],
)
def test_the_last_pattern_that_matches_decides(text: str, kept_out: set[str]) -> None:
    assert ignored(text, PATHS) == kept_out


def harbor(root: Path, ignore: str) -> Path:
    files = {
        "task.toml": "[metadata.milo]\nany_base = true\n",
        "instruction.md": "Guess.",
        "tests/test.sh": "true",
        "environment/Dockerfile": "FROM debian:12\nWORKDIR /app\nCOPY . .\n",
        "environment/.dockerignore": ignore,
        "environment/answer.txt": "42",
        "environment/question.txt": "?",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_what_a_task_keeps_out_of_its_image_no_harness_sees(tmp_path: Path) -> None:
    task = load_one(harbor(tmp_path / "t", "answer.txt\n"))
    assert "question.txt" in task.workspace and "answer.txt" not in task.workspace


def test_patterns_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    place = harbor(tmp_path / "t", "[z-a]\n") / "environment"
    with pytest.raises(TaskError, match=r"\.dockerignore: expected patterns"):
        build_context(place)
