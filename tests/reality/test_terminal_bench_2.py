"""Tasks that others wrote: their reference solutions score 1 and doing nothing scores 0.

Terminal-Bench 2 is fetched, never committed: ``MILO_TB2_DIR`` names a folder with its tasks. Two
tasks of our own in the same format run everywhere.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest
from reality_shims import FOLDER, LIBRARIES, Shimmed

from milo.app.suite_tools import run_solution
from milo.core.task import Task
from milo.suites.folder import load_one, scan_folder

FIXTURES = Path(__file__).parent / "fixtures"
TASKS = {
    "cancel-async-tasks": (),
    "constraints-scheduling": (),
    "db-wal-recovery": ("sqlite3",),
    "distribution-search": ("numpy",),
    "feal-linear-cryptanalysis": ("gcc",),
    "git-leak-recovery": ("git",),
    "llm-inference-batching-scheduler": (),
    "log-summary-date-ranges": (),
    "model-extraction-relu-logits": ("numpy",),
    "openssl-selfsigned-cert": ("openssl",),
    "polyglot-c-py": ("gcc",),
    "regex-log": (),
    "sparql-university": ("rdflib",),
    "sqlite-db-truncate": (),
    "vulnerable-secret": ("gcc",),
}
"""Tasks that need no network but what the shims stand in for, and what they need of this host."""
RACING = ("cancel-async-tasks",)
"""Tasks whose own tests race with the machine, whatever our limits are: these interrupt a Python
half a second after they started it, and demand that it had begun its work by then."""
TRIES = 3


def task_of(name: str) -> Task:
    """A task of the folder; skips with the reason where it or what it needs is not there."""
    folder = os.environ.get(FOLDER, "")
    if not folder:
        pytest.skip(f"{FOLDER} names no folder of Terminal-Bench 2 tasks")
    for tool in TASKS[name]:
        there = importlib.util.find_spec(tool) if tool in LIBRARIES else shutil.which(tool)
        if there is None:
            pytest.skip(f"{tool} is not installed")
    return load_one(Path(folder) / name)


async def rewards(sandbox: Shimmed, task: Task) -> tuple[float | None, float | None, str]:
    """What doing nothing and what the reference solution is given, and what the latter said."""
    idle = await run_solution(sandbox, task, None)
    solved = await run_solution(sandbox, task, task.solution)
    said = "\n".join((idle.detail, solved.detail, solved.output[-3000:]))
    return idle.reward, solved.reward, said


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(TASKS))
async def test_a_task_of_terminal_bench_2_is_solved_by_its_reference_alone(
    shimmed: Shimmed, name: str
) -> None:
    task, tries = task_of(name), TRIES if name in RACING else 1
    found = [await rewards(shimmed, task)]
    while found[-1][1] != 1.0 and len(found) < tries:
        found.append(await rewards(shimmed, task))
    idle, solved, said = found[-1]
    assert (idle, solved) == (0.0, 1.0), said


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir()))
async def test_a_task_of_the_same_format_is_solved_by_its_reference_alone(
    shimmed: Shimmed, name: str
) -> None:
    idle, solved, said = await rewards(shimmed, load_one(FIXTURES / name))
    assert (idle, solved) == (0.0, 1.0), said


def test_every_task_of_terminal_bench_2_loads() -> None:
    folder = os.environ.get(FOLDER, "")
    if not folder:
        pytest.skip(f"{FOLDER} names no folder of Terminal-Bench 2 tasks")
    scan = scan_folder(Path(folder))
    assert not scan.broken, "\n".join(map(str, scan.broken.values()))
    assert scan.tasks.keys() >= TASKS.keys()
