"""Harbor task folders (Terminal-Bench 2.x): read strictly into `Task` values, and written back.

A folder holds `task.toml`, `instruction.md`, `environment/`, `tests/test.sh` and optionally
`solution/solve.sh`, or the last four once for each of its steps. What not every sandbox can give
is named in the task's `needs`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from milo.core.errors import TaskError
from milo.core.judge import JUDGE_FILE
from milo.core.task import WORKSPACE, Judging, Network, Task
from milo.core.tree import FileTree
from milo.suites.harbor_place import DOCKERFILE, place_of
from milo.suites.harbor_steps import TEST_SCRIPT, Parts, instruction_of, solution_of, steps_of
from milo.suites.keys import Table, filled
from milo.suites.lazy import folder_tree, read_text

MARK = "task.toml"
"""The file that makes a folder a Harbor task."""
TOP_KEYS = (
    *("schema_version", "version", "task", "metadata", "agent", "verifier", "environment"),
    *("solution", "source", "artifacts", "steps", "multi_step_reward_strategy"),
)
PUBLISHED = "/logs/artifacts"
ARTIFACT_KEYS = ("source", "destination", "exclude", "service")


def load_task(folder: Path, network: Network = Network.NONE) -> Task:
    """One task; its id is the folder's name. Raises `TaskError` naming folder, file and key.

    `network` is for a task that says nothing about it (Harbor itself then gives all of it). Trees
    are read when they are looked into.
    """
    config = Table.of_toml(read_text(folder / MARK, folder), str(folder / MARK))
    config.check(TOP_KEYS)
    place = place_of(folder, config, network)
    parts = steps_of(folder, config, place)
    env, missing = filled(config.table("environment").texts("env"))
    judging, odd = _with_artifacts(config, place.judging)
    ours = config.table("metadata").table("milo")
    task = Task(
        id=folder.name,
        instruction=_instruction(folder, parts),
        family=_family(config),
        workspace=place.start.workspace,
        tests=FileTree() if parts.steps else _tests(folder, judging),
        solution=FileTree() if parts.steps else solution_of(folder, "solution"),
        env={**place.start.env, **env},
        limits=place.limits,
        needs=place.needs | parts.needs | odd | {f"variable {name}" for name in missing},
        resolved_at=ours.number("resolved_at", 1.0),
        reward_range=ours.span("reward_range", (0.0, 1.0)),
        setting=place.setting,
        judging=judging,
        steps=parts.steps,
        step_reward=parts.reward,
    )
    return _with_workdir_need(task)


def write_task(folder: Path, task: Task) -> None:
    """Write a task as a Harbor folder; `load_task` gives back an equal one.

    Raises `TaskError` for a task that is more than files and a script.
    """
    plain = Task(id=task.id, instruction=task.instruction)
    if task.needs or (task.setting, task.judging, task.steps) != (
        plain.setting,
        plain.judging,
        plain.steps,
    ):
        found = ", ".join(sorted(task.needs)) or "a setting, a judging or steps of its own"
        raise TaskError(f"task {task.id}", "nothing but files and a test script", found)
    (folder / "environment").mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(_toml(task))
    (folder / "instruction.md").write_text(task.instruction + "\n")
    copy = "COPY files/ /workspace/\n" if task.workspace else ""
    dockerfile = f"FROM python:3.11-slim\nWORKDIR /workspace\n{copy}"
    (folder / "environment" / DOCKERFILE).write_text(dockerfile)
    task.workspace.write_to(folder / "environment" / "files")
    task.tests.write_to(folder / "tests")
    if task.solution:
        task.solution.write_to(folder / "solution")


def _instruction(folder: Path, parts: Parts) -> str:
    if parts.steps:
        return "\n\n".join(step.instruction for step in parts.steps)
    return instruction_of(folder, folder / "instruction.md")


def _tests(folder: Path, judging: Judging) -> FileTree:
    tests = folder_tree(folder, "tests")
    if not {TEST_SCRIPT, JUDGE_FILE} & set(tests) and not judging.bundled:
        expected = f"the verifier tests/{TEST_SCRIPT} or tests/{JUDGE_FILE}"
        raise TaskError(f"task {folder}", expected, "none")
    return tests


def _family(config: Table) -> str:
    metadata = config.table("metadata")
    for key in ("family", "category"):
        if metadata.raw.get(key):
            return metadata.text(key)
    return ""


def _with_workdir_need(task: Task) -> Task:
    """A folder other than /workspace is needed where the instruction or the tests name it."""
    workdir = task.setting.workdir
    if workdir in ("", WORKSPACE) or task.needs & {"image-build", "image-pull", "compose"}:
        return task
    trees = (task.tests, *(step.tests for step in task.steps))
    named = workdir in task.instruction or any(
        workdir in tree.text(path) for tree in trees for path in tree
    )
    return replace(task, needs=task.needs | {"workdir"}) if named else task


def _with_artifacts(config: Table, judging: Judging) -> tuple[Judging, frozenset[str]]:
    """What a verifier of its own is given of the agent's files; who shares them sees all."""
    sources, needs = [], set[str]()
    for number, item in enumerate(config.items("artifacts")):
        entry = Table({"source": item} if isinstance(item, str) else item, config.source)
        entry.check(ARTIFACT_KEYS)
        source = entry.text("source")
        if not source or ".." in source.split("/"):
            raise config.error(f"artifacts[{number}]", "a path without '..'", repr(source))
        sources.append(source)
        if entry.text("service", "main") != "main":
            needs.add("compose")
        if entry.words("exclude"):
            needs.add("artifact-exclude")
    if not judging.separate:
        return judging, frozenset()
    if any(not f"{source}/".startswith(f"{PUBLISHED}/") for source in sources):
        needs.add("isolation")  # they are put at their absolute paths
    return replace(judging, artifacts=tuple(sources)), frozenset(needs)


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
        f"reward_range = {list(task.reward_range)}",
        "any_base = true",
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
