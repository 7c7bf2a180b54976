"""Tasks that others wrote: whatever a file holds, a task loads or is refused by name."""

from __future__ import annotations

import itertools
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from milo.core.errors import TaskError
from milo.suites import quarantine
from milo.suites.folder import load_one, scan_folder
from milo.suites.harbor import TOP_KEYS
from milo.suites.harbor_place import AGENT_KEYS, ENVIRONMENT_KEYS, HEALTH_KEYS, VERIFIER_KEYS
from milo.suites.harbor_steps import STEP_KEYS
from milo.suites.terminal_bench import KEYS

VALUES: tuple[Any, ...] = (
    *(5, -1, 0, float("inf"), float("nan"), True, "", "x", "${A}", "../x", "2G", "é" * 300),
    *([], [1], ["a"], [[1]], [{}], {}, {"a": 1}, {"a": "b"}),
)
TABLES: Mapping[tuple[str, ...], Sequence[str]] = {
    (): TOP_KEYS,
    ("agent",): AGENT_KEYS,
    ("verifier",): VERIFIER_KEYS,
    ("verifier", "environment"): ENVIRONMENT_KEYS,
    ("environment",): ENVIRONMENT_KEYS,
    ("environment", "healthcheck"): HEALTH_KEYS,
    ("solution",): ("env",),
    ("metadata",): ("family", "category", "milo"),
    ("metadata", "milo"): ("processes", "resolved_at", "any_base", "reward_range"),
}
ARTIFACT_KEYS = ("source", "destination", "exclude", "service")


def toml(value: Any) -> str:
    """A value as TOML writes it, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def nested(place: Sequence[str], value: Any) -> Any:
    for key in reversed(place):
        value = {key: value}
    return value


def odd_configurations() -> Iterator[dict[str, Any]]:
    for place, keys in TABLES.items():
        for key, value in itertools.product(keys, VALUES):
            yield nested([*place, key], value)
    for key, value in itertools.product(STEP_KEYS, VALUES):
        yield {"steps": [{"name": "one", key: value}]}
    for key, value in itertools.product(ARTIFACT_KEYS, VALUES):
        apart = {"environment_mode": "separate"}
        yield {"artifacts": [{"source": "/a", key: value}], "verifier": apart}
    for value in VALUES:
        yield {"artifacts": [value]}


def harbor(root: Path) -> Path:
    for name in ("environment", "tests", "solution", "steps/one/tests"):
        (root / "task" / name).mkdir(parents=True)
    for path, text in {
        "instruction.md": "Sort it.",
        "environment/Dockerfile": "FROM x\nWORKDIR /workspace\n",
        "tests/test.sh": "true",
        "solution/solve.sh": "true",
        "steps/one/instruction.md": "Sort it.",
        "task.toml": 'steps = [{name = "one"}]',
    }.items():
        (root / "task" / path).write_text(text)
    return root / "task"


def simple(root: Path) -> Path:
    task = root / "task"
    (task / "files").mkdir(parents=True)
    (task / "instruction.md").write_text("Sort it.")
    (task / "check.sh").write_text("true")
    return task


def terminal_bench(root: Path) -> Path:
    task = root / "task"
    task.mkdir()
    for name, text in {"Dockerfile": "FROM x", "run-tests.sh": "true"}.items():
        (task / name).write_text(text)
    return task


def loads_or_is_refused(task: Path) -> bool:
    """Whether it loads; any other error than a refusal that names the task fails the test."""
    try:
        return bool(load_one(task).digest)
    except TaskError as refusal:
        assert task.name in str(refusal)
        return False


def test_any_value_of_any_key_of_harbors_loads_or_is_refused(tmp_path: Path) -> None:
    task = harbor(tmp_path)
    loaded = []
    for config in odd_configurations():
        given = config if "steps" in config else {"steps": [{"name": "one"}], **config}
        text = "\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in given.items())
        tomllib.loads(text)
        (task / "task.toml").write_text(text)
        loaded.append(loads_or_is_refused(task))
    assert {True, False} == set(loaded)


def test_any_value_of_any_key_of_terminal_benchs_loads_or_is_refused(tmp_path: Path) -> None:
    task = terminal_bench(tmp_path)
    for key, value in itertools.product(KEYS, VALUES):
        (task / "task.yaml").write_text(yaml.safe_dump({"instruction": "x", key: value}))
        loads_or_is_refused(task)
    (task / "task.yaml").write_text("instruction: Sort it.")
    places = (["services"], ["services", "client"], ["services", "client", "environment"])
    for place, value in itertools.product((*places, ["services", "client", "volumes"]), VALUES):
        (task / "docker-compose.yaml").write_text(yaml.safe_dump(nested(place, value)))
        loads_or_is_refused(task)


@pytest.mark.parametrize("mark", ["task.toml", "task.yaml"])
def test_a_configuration_nested_beyond_reading_is_refused(tmp_path: Path, mark: str) -> None:
    (tmp_path / "deep").mkdir()
    deep = "[" * 5000 + "]" * 5000
    (tmp_path / "deep" / mark).write_text(f"x = {deep}" if mark == "task.toml" else f"x: {deep}")
    assert "deep" in str(scan_folder(tmp_path).broken["deep"])


def test_a_quarantine_nested_beyond_reading_is_refused(tmp_path: Path) -> None:
    (tmp_path / quarantine.FILE).write_text("[" * 100_000)
    with pytest.raises(TaskError, match=r"quarantine\.json"):
        quarantine.read(tmp_path)


ODD_FILES: Mapping[str, Callable[[Path], object]] = {
    "an instruction of other bytes": lambda t: (t / "instruction.md").write_bytes(b"\xff\xfe"),
    "a folder for a script": lambda t: (t / "solution.sh").mkdir(),
    "a file for a folder": lambda t: (t / "check").write_text("x"),
    "a pipe": lambda t: os.mkfifo(t / "files" / "pipe"),
    "a link in a folder": lambda t: (t / "files" / "link").symlink_to("/etc/hostname"),
    "a link to a folder": lambda t: (t / "check").symlink_to("/etc"),
    "a link to a file": lambda t: (t / "solution.sh").symlink_to("/etc/hostname"),
    "a name of other bytes": lambda t: open(os.fsencode(t / "files") + b"/\xff", "w").close(),
}


@pytest.mark.parametrize("what", ODD_FILES)
def test_a_task_that_shows_more_than_plain_files_is_refused(tmp_path: Path, what: str) -> None:
    """A link in a suite of somebody else's would show a harness files of this machine."""
    task = simple(tmp_path)
    assert loads_or_is_refused(task)
    ODD_FILES[what](task)
    assert not loads_or_is_refused(task) or what == "a folder for a script"


def test_a_linked_instruction_is_refused_in_every_form(tmp_path: Path) -> None:
    task = harbor(tmp_path)
    inner = task / "steps" / "one" / "instruction.md"
    inner.unlink()
    inner.symlink_to("/etc/hostname")
    with pytest.raises(TaskError, match="found a symbolic link"):
        load_one(task)
