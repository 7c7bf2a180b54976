"""How a model judges a task: what its `judge.json` may say.

| kind | reward |
| --- | --- |
| ``rubric`` | PaperBench's tree: leaves are met or not, a node is its children's weighted mean |
| ``equivalent`` | 1 where an answer means the same as the expected one, else 0 |
| ``pairwise`` | share of the weight won against a reference, each criterion judged in both orders |

Files are named by glob below the workspace; what a task keeps for the judge lies among its tests.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from milo.core.errors import TaskError
from milo.core.judge import JUDGE_FILE
from milo.core.task import Task
from milo.core.tree import FileTree

S = TypeVar("S")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Node(BaseModel):
    """A node of a rubric, as PaperBench writes it; keys that it has beside these are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    requirements: str
    weight: float = Field(default=1.0, ge=0)
    sub_tasks: tuple[Node, ...] = ()
    task_category: str | None = None


class Rubric(_Part):
    """`rubric` is the tree, or the file among the tests that holds it. With a `category` only the
    leaves of it are judged (PaperBench Code-Dev: ``Code Development``)."""

    kind: Literal["rubric"]
    files: tuple[str, ...] = Field(min_length=1)
    rubric: Node | str
    category: str = ""


class Equivalent(_Part):
    """Whether the text of a file means the same as `expected`, as an answer to `question`."""

    kind: Literal["equivalent"]
    file: str
    question: str
    expected: str


class Criterion(_Part):
    """One respect in which two pieces of work are compared."""

    name: str
    requirements: str
    weight: float = Field(default=1.0, gt=0)


class Pairwise(_Part):
    """Files against `reference`, a file among the tests that somebody else made of `task`."""

    kind: Literal["pairwise"]
    files: tuple[str, ...] = Field(min_length=1)
    reference: str
    task: str
    criteria: tuple[Criterion, ...] = Field(min_length=1)


Spec = Rubric | Equivalent | Pairwise
_ADAPTER: TypeAdapter[Spec] = TypeAdapter(Annotated[Spec, Field(discriminator="kind")])


def spec_of(task: Task) -> Spec:
    """How a task is judged, its rubric read; raises `TaskError` naming the key that is wrong."""
    spec = _parsed(task, JUDGE_FILE, _ADAPTER)
    if isinstance(spec, Pairwise) and spec.reference not in task.tests:
        raise TaskError(f"task {task.id}", f"tests/{spec.reference} to compare with", "none")
    if not isinstance(spec, Rubric):
        return spec
    tree = spec.rubric
    if isinstance(tree, str):
        tree = _parsed(task, tree, TypeAdapter(Node))
    names = [leaf.id for leaf in leaves(tree, spec.category)]
    if not names or len(names) != len(set(names)):
        found = "none" if not names else "two of one id"
        raise TaskError(f"task {task.id}", f"leaves with ids of their own {spec.category}", found)
    return spec.model_copy(update={"rubric": tree})


def leaves(node: Node, category: str = "") -> Iterator[Node]:
    """The leaves of a rubric, or those of one category."""
    for child in node.sub_tasks:
        yield from leaves(child, category)
    if not node.sub_tasks and category in ("", node.task_category):
        yield node


def shown(workspace: FileTree, patterns: tuple[str, ...]) -> dict[str, str]:
    """The files that patterns name, by path, in order."""
    return {
        path: workspace.text(path)
        for path in sorted(workspace)
        if any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)
    }


def _parsed(task: Task, name: str, adapter: TypeAdapter[S]) -> S:
    if name not in task.tests:
        raise TaskError(f"task {task.id}", f"a file tests/{name}", "none")
    try:
        return adapter.validate_python(json.loads(task.tests.text(name)))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        where = f"task {task.id}, tests/{name}{f' key {key!r}' if key else ''}"
        raise TaskError(where, first["msg"].lower(), repr(first.get("input"))[:200]) from error
    except ValueError as error:
        raise TaskError(f"task {task.id}, tests/{name}", "JSON", str(error)) from error
