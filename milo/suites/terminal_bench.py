"""Terminal-Bench 1 task folders: read into the same `Task` values, judged as Harbor judges.

A folder holds `task.yaml`, `Dockerfile`, `docker-compose.yaml`, `run-tests.sh`, `tests/` and
optionally `solution.sh`. What pytest says in its short summary decides: all tests passed (or were
skipped, or failed as expected), and there was at least one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from milo.core.errors import TaskError
from milo.core.task import Image, Limits, Network, Setting, Task
from milo.core.tree import File, FileTree
from milo.suites.dockerfile import Derived, derive
from milo.suites.dockerignore import build_context
from milo.suites.harbor_place import DOCKERFILE, PROCESSES, build_needs
from milo.suites.keys import Table
from milo.suites.lazy import folder_tree, read_text

MARK = "task.yaml"
"""The file that makes a folder a Terminal-Bench task."""
COMPOSE = "docker-compose.yaml"
RUN_TESTS = "run-tests.sh"
SOLUTION = "solution.sh"
OURS = (MARK, DOCKERFILE, COMPOSE, RUN_TESTS, SOLUTION, "solution.yaml")
KEYS = (
    *("instruction", "descriptions", "difficulty", "category", "tags", "parser_name"),
    *("max_agent_timeout_sec", "max_test_timeout_sec", "run_tests_in_same_shell"),
    *("author", "author_name", "author_email", "disable_asciinema", "estimated_duration_sec"),
    *("expert_time_estimate_min", "junior_time_estimate_min", "language", "env_name"),
)
SERVICE = "client"
PLAIN_KEYS = frozenset(
    (
        *("build", "image", "container_name", "command", "volumes", "environment", "deploy"),
        *("tty", "stdin_open"),
    )
)
"""What a task's one service says where it is nothing but its Dockerfile's image."""
TEST_DIR = "/tests"
LOGS = "${T_BENCH_"
"""How the volumes begin that every task has, for its logs."""
TEST_SH = """\
#!/bin/bash
# What pytest says in its short summary decides; where there is none nothing was passed.
export TEST_DIR="${MILO_TESTS:-/tests}"
logs="${MILO_LOGS:-/logs}/verifier"
bash "$TEST_DIR/run-tests.sh" >"$logs/output.txt" 2>&1
awk '
    tolower($0) ~ /=+ *short test summary info *=+/ { seen = 1; next }
    seen && NF > 1 { word = $1; sub(/:$/, "", word) }
    seen && NF > 1 && (word == "PASSED" || word == "SKIPPED" || word == "XFAIL") { good++ }
    seen && NF > 1 && (word == "FAILED" || word == "ERROR" || word == "XPASS") { bad++ }
    END { print (good > 0 && bad == 0) ? 1 : 0 }
' "$logs/output.txt" >"$logs/reward.txt"
cat "$logs/output.txt"
"""


def load_task(folder: Path, network: Network = Network.NONE) -> Task:
    """One task; its id is the folder's name. Raises `TaskError` naming folder, file and key."""
    config = _config(folder)
    parser = config.text("parser_name", "pytest")
    if parser != "pytest":
        raise config.error("parser_name", "pytest", repr(parser))
    start, image = _start(folder)
    env, composed = _service(folder)
    needs = {"compose"} if composed else set()
    return Task(
        id=folder.name,
        instruction=_instruction(config),
        family=config.text("category"),
        workspace=start.workspace,
        tests=_tests(folder),
        solution=_solution(folder),
        env={**start.env, **env, "TEST_DIR": TEST_DIR},
        limits=Limits(
            agent_timeout_s=config.number("max_agent_timeout_sec", 360.0),
            verifier_timeout_s=config.number("max_test_timeout_sec", 60.0),
            memory_mb=2048,
            storage_mb=10_240,
            processes=PROCESSES,
            network=network,
        ),
        needs=frozenset(needs | (build_needs(*_dockerfile(folder)) if start.obstacle else set())),
        setting=Setting(image=image, workdir="" if start.obstacle else start.workdir),
    )


def _config(folder: Path) -> Table:
    source = str(folder / MARK)
    raw = _yaml(read_text(folder / MARK, folder), source)
    if not isinstance(raw, dict):
        raise TaskError(source, "a table of keys", type(raw).__name__)
    config = Table(raw, source)
    config.check(KEYS)
    return config


def _yaml(text: str, source: str) -> Any:
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise TaskError(source, "valid YAML", " ".join(str(error).split())) from error


def _instruction(config: Table) -> str:
    """The instruction; in the oldest tasks a key into a list of descriptions."""
    text = config.text("instruction").strip()
    if config.raw.get("descriptions"):
        for entry in config.tables("descriptions"):
            if entry.text("key") == (text or "base"):
                text = entry.text("description").strip()
    if not text:
        raise config.error("instruction", "an instruction", "none")
    return text


def _tests(folder: Path) -> FileTree:
    """tests/, run-tests.sh beside it, and the test.sh that reads what pytest says."""
    tests = folder_tree(folder, "tests")
    script = folder / RUN_TESTS
    if not script.is_file() and RUN_TESTS not in tests:
        raise TaskError(f"task {folder}", f"the script {RUN_TESTS}", "none")
    own = {RUN_TESTS: File(script.read_bytes(), True)} if script.is_file() else {}
    return FileTree({**tests, **own, "test.sh": File(TEST_SH.encode(), True)})


def _solution(folder: Path) -> FileTree:
    """solution.sh as Harbor's solve.sh; a recorded terminal session (solution.yaml) is none."""
    path = folder / SOLUTION
    if not path.is_file():
        return FileTree()
    return FileTree({"solve.sh": File(path.read_bytes(), True)})


def _start(folder: Path) -> tuple[Derived, Image]:
    """The start as far as it can be had without an image, and the image.

    The context is the folder as the engine would see it, without the solution and the tests
    unless the Dockerfile names them.
    """
    text, _ = _dockerfile(folder)
    secret = {name for name in (SOLUTION, "solution.yaml", RUN_TESTS, "tests") if name not in text}
    hidden = frozenset(secret | {MARK, COMPOSE, DOCKERFILE})
    start = derive(text, build_context(folder, hidden))
    return start, Image(context=build_context(folder, hidden - {DOCKERFILE}))


def _dockerfile(folder: Path) -> tuple[str, Path]:
    path = folder / DOCKERFILE
    return read_text(path, folder), path


def _service(folder: Path) -> tuple[dict[str, str], bool]:
    """The variables of docker-compose.yaml's service, and whether the file asks for more than the
    one container of the Dockerfile."""
    path = folder / COMPOSE
    if not path.is_file():
        return {}, False
    raw = _yaml(read_text(path, folder), str(path))
    services = raw.get("services") if isinstance(raw, dict) else None
    if not isinstance(services, dict) or not all(isinstance(s, dict) for s in services.values()):
        raise TaskError(f"{path} key 'services'", "a table of services", repr(services))
    client = services.get(SERVICE, {})
    env = _variables(client.get("environment", {}))
    plain = list(services) == [SERVICE] and PLAIN_KEYS.issuperset(client)
    logs = all(str(volume).startswith(LOGS) for volume in _volumes(client, path))
    return env, not (plain and logs) or any("${" in value for value in env.values())


def _volumes(service: dict[str, Any], path: Path) -> list[Any]:
    volumes = service.get("volumes") or []
    if not isinstance(volumes, list):
        raise TaskError(f"{path} key 'volumes'", "a list", repr(volumes))
    return volumes


def _variables(given: Any) -> dict[str, str]:
    """A service's variables, from either form; the engine's own test folder filled in."""
    if isinstance(given, list):
        given = dict(str(item).partition("=")[::2] for item in given)
    if not isinstance(given, dict):
        return {}
    return {
        str(key): str(value).replace("${T_BENCH_TEST_DIR}", TEST_DIR)
        for key, value in given.items()
    }
