"""What must be as it was for a run to go on: its model, and the content of its tasks."""

from __future__ import annotations

from milo.core.errors import RunError
from milo.core.events import RunStarted
from milo.core.task import Suite

NAMED = 4
"""How many tasks a refusal names."""


def digests(suite: Suite) -> dict[str, str]:
    """The content hashes of the tasks in the splits, by id."""
    splits = suite.splits
    tasks = (*splits.search, *splits.validation, *splits.test)
    return {task: suite.tasks[task].digest for task in tasks}


def check_same(started: RunStarted, suite: Suite, model: str) -> None:
    """Raise `RunError` where a run would go on with another model, or other tasks, than it began
    with: what it has measured so far would not compare."""
    if model != started.model:
        raise RunError("the model of this run", started.model, model)
    found = digests(suite)
    changes = [
        f"{task} is {'changed' if task in found else 'gone'}"
        for task, digest in started.tasks.items()
        if found.get(task) != digest
    ]
    splits = suite.splits
    now = (splits.search, splits.validation, splits.test)
    if not changes and now != (started.search, started.validation, started.test):
        changes = ["they are split in another way"]
    if changes:
        more = [f"{len(changes) - NAMED} more"] if len(changes) > NAMED else []
        said = ", ".join([*changes[:NAMED], *more])
        raise RunError(f"suite {suite.name} of this run", "the tasks that it began with", said)
