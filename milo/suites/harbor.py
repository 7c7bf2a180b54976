"""Harbor task folders (Terminal-Bench 2.x): read strictly into `Task` values, and written back.

A folder holds `task.toml`, `instruction.md`, `environment/`, `tests/test.sh` and optionally
`solution/solve.sh`. What a local sandbox cannot give is named in the task's `needs`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from milo.core.errors import TaskError, UserError
from milo.core.task import Limits, Network, Task
from milo.core.tree import FileTree
from milo.suites.dockerfile import Derived, derive
from milo.suites.harbor_config import Config

NO_AGENT_TIMEOUT_S = 3600.0
"""Harbor sets no agent time limit by default; every attempt of ours has one."""
PROCESSES = 256
DOCKERFILE = "Dockerfile"
COMPOSE = ("docker-compose.yaml", "docker-compose.yml")


def load_folder(folder: Path) -> Mapping[str, Task]:
    """All tasks below `folder` (one folder each) by id; raises `TaskError` on the first broken."""
    if not folder.is_dir():
        raise TaskError(f"suite {folder}", "a folder of Harbor tasks", "no such folder")
    places = sorted(place for place in folder.iterdir() if (place / "task.toml").exists())
    strays = sorted(
        place.name
        for place in folder.iterdir()
        if place.is_dir() and not place.name.startswith(".") and place not in places
    )
    if strays:
        raise TaskError(f"task {folder / strays[0]}", "a file task.toml", "none")
    if not places:
        raise TaskError(f"suite {folder}", "at least one task folder with a task.toml", "none")
    return {place.name: load_task(place) for place in places}


def load_task(folder: Path) -> Task:
    """One task; its id is the folder's name. Raises `TaskError` naming folder, file and key."""
    config = Config(_text(folder, "task.toml"), str(folder / "task.toml"))
    instruction = _text(folder, "instruction.md").strip()
    if not instruction:
        raise TaskError(str(folder / "instruction.md"), "an instruction", "an empty file")
    if "steps" in config.raw or (folder / "steps").exists():
        raise TaskError(f"task {folder}", "a single-step task", "a multi-step one (steps)")
    tests = _tree(folder, "tests")
    if "test.sh" not in tests:
        raise TaskError(f"task {folder}", "the verifier tests/test.sh", "none")
    start, needs = _start(folder, config)
    mentions = instruction + "".join(tests.text(path) for path in tests)
    if start.workdir != "/workspace" and start.workdir in mentions:
        needs = needs | {"workdir"}
    return Task(
        id=folder.name,
        instruction=instruction,
        family=_family(config),
        workspace=start.workspace,
        tests=tests,
        solution=_solution(folder),
        env={**start.env, **config.texts("environment", "env")},
        limits=_limits(config),
        needs=needs,
        resolved_at=config.number("metadata.milo", "resolved_at", 1.0),
    )


def write_task(folder: Path, task: Task) -> None:
    """Write a task as a Harbor folder; `load_task` gives back an equal one.

    Raises `TaskError` for a task that needs an image: what is in it is not known here.
    """
    if task.needs:
        raise TaskError(f"task {task.id}", "no needs", ", ".join(sorted(task.needs)))
    (folder / "environment").mkdir(parents=True, exist_ok=True)
    (folder / "task.toml").write_text(_toml(task))
    (folder / "instruction.md").write_text(task.instruction + "\n")
    copy = "COPY files/ /workspace/\n" if task.workspace else ""
    dockerfile = f"FROM python:3.11-slim\nWORKDIR /workspace\n{copy}"
    (folder / "environment" / DOCKERFILE).write_text(dockerfile)
    task.workspace.write_to(folder / "environment" / "files")
    task.tests.write_to(folder / "tests")
    if task.solution:
        task.solution.write_to(folder / "solution")


def _text(folder: Path, name: str) -> str:
    path = folder / name
    if not path.is_file():
        raise TaskError(f"task {folder}", f"a file {name}", "none")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TaskError(str(path), "UTF-8 text", str(error)) from error


def _tree(folder: Path, name: str) -> FileTree:
    if not (folder / name).is_dir():
        return FileTree()
    try:
        return FileTree.from_dir(folder / name)
    except UserError as error:
        raise TaskError(error.thing, error.expected, error.found) from error


def _solution(folder: Path) -> FileTree:
    tree = _tree(folder, "solution")
    if (folder / "solution").exists() and "solve.sh" not in tree:
        raise TaskError(f"task {folder}", "the script solution/solve.sh", "none")
    return tree


def _family(config: Config) -> str:
    metadata = config.table("metadata")
    for key in ("family", "category"):
        if metadata.get(key):
            return config.text("metadata", key)
    return ""


def _start(folder: Path, config: Config) -> tuple[Derived, frozenset[str]]:
    """The starting state, and what a sandbox must offer to give it."""
    context = _tree(folder, "environment")
    needs = _special_needs(config)
    if any(name in context for name in COMPOSE):
        needs |= {"compose"}
    if DOCKERFILE in context:
        start = derive(context.text(DOCKERFILE), context.without(DOCKERFILE))
        needs |= {"image-build"} if start.obstacle else set()
        return start, frozenset(needs)
    if config.text("environment", "docker_image"):
        return Derived(), frozenset(needs | {"image-pull"})
    if "compose" in needs:
        return Derived(), frozenset(needs)
    raise TaskError(
        f"task {folder}", "environment/Dockerfile or the key 'environment.docker_image'", "none"
    )


def _special_needs(config: Config) -> set[str]:
    """Requests in task.toml that not every sandbox can fulfil."""
    environment = config.table("environment")
    needs = {key for key in ("healthcheck", "mcp_servers", "skills_dir") if environment.get(key)}
    if environment.get("gpus"):
        needs.add("gpu")
    if config.text("environment", "os", "linux").lower() != "linux":
        needs.add(config.text("environment", "os").lower())
    if config.text("environment", "workdir") not in ("", "/workspace"):
        needs.add("workdir")
    mode = config.text("verifier", "environment_mode", "shared")
    if mode not in ("shared", "separate"):
        raise config.error("verifier.environment_mode", "shared or separate", repr(mode))
    if mode == "separate":
        needs.add("separate-verifier")
    return needs


def _limits(config: Config) -> Limits:
    """Limits with Harbor's defaults; `[metadata.milo] processes` is ours."""
    return Limits(
        agent_timeout_s=config.number("agent", "timeout_sec", NO_AGENT_TIMEOUT_S),
        verifier_timeout_s=config.number("verifier", "timeout_sec", 600.0),
        memory_mb=config.size_mb("memory_mb", "memory", 2048),
        storage_mb=config.size_mb("storage_mb", "storage", 10_240),
        processes=config.whole("metadata.milo", "processes", PROCESSES),
        cpus=config.number("environment", "cpus", 1.0),
        network=_network(config),
    )


def _network(config: Config) -> Network:
    """What the task asks for; no network where it asks for nothing (Harbor itself gives all)."""
    asked = config.flag("environment", "allow_internet", False)
    default = Network.PUBLIC if asked else Network.NONE
    mode = config.text("environment", "network_mode", default.value)
    try:
        return Network(mode)
    except ValueError as error:
        known = ", ".join(network.value for network in Network)
        raise config.error("environment.network_mode", f"one of {known}", repr(mode)) from error


def _toml(task: Task) -> str:
    """`task.toml` for a task; JSON strings are valid TOML strings."""
    limits = task.limits
    rows = [
        'schema_version = "1.4"',
        "",
        "[metadata]",
        f"family = {json.dumps(task.family)}",
        "",
        "[metadata.milo]",
        f"processes = {limits.processes}",
        f"resolved_at = {float(task.resolved_at)}",
        "",
        "[agent]",
        f"timeout_sec = {limits.agent_timeout_s}",
        "",
        "[verifier]",
        f"timeout_sec = {limits.verifier_timeout_s}",
        "",
        "[environment]",
        f'network_mode = "{limits.network.value}"',
        f"cpus = {limits.cpus}",
        f"memory_mb = {limits.memory_mb}",
        f"storage_mb = {limits.storage_mb}",
        "",
        "[environment.env]",
        *(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in task.env.items()),
    ]
    return "\n".join(rows) + "\n"
