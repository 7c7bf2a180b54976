"""The arena's tasks: a problem, a frozen construction, a parent optimizer, and a time limit.

The reward is the gain over the frozen construction divided by the target improvement, cut to
[0, 1]. The target is a published value; where the construction that has it comes with MILO, that
is the reference solution. Starts are constant or random (seeded by the index), or published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from milo.core.task import Limits, Task
from milo.core.tree import File, FileTree
from milo.suites.arena.harness.seeds import optimizer, package_files, text_of
from milo.suites.arena.optimizer.factory import landscape_of
from milo.suites.arena.optimizer.landscape import Scaled
from milo.suites.arena.problems.catalogue import candidate_of, problems
from milo.suites.arena.problems.problem import Array, Problem, verify

NAMES = tuple(problems())
"""The families: one per problem."""
COUNT = 6
"""Tasks per problem."""
MOST = 1000
"""Steps that a function may have in a task, so that its record fits beside the attempt."""
SECONDS = 20.0
LEAST_SECONDS = 5.0
"""An optimizer keeps two seconds of an attempt for ending; with less than this, little is left."""
LIMITS = Limits(
    agent_timeout_s=SECONDS, verifier_timeout_s=60.0, memory_mb=2048, storage_mb=64, processes=64
)
PARENT = "subgradient"
NEEDS = frozenset({"numpy"})
SIZES: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "circle-packing": (26, 3),
        "circle-packing-32": (32, 3),
        "circles-rectangle": (21, 3),
        "min-distance-ratio-2d": (16, 2),
        "heilbronn-triangles": (11, 2),
        "heilbronn-convex-13": (13, 2),
        "heilbronn-convex": (14, 2),
        "thomson-problem": (282, 3),
        "flat-polynomials": (70,),
        "difference-bases": (60,),
    }
)
STEPS = 48
PUBLISHED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "erdos-min-overlap": ("erdos_haugland_51", "erdos_alphaevolve_95", "erdos_ttt_600"),
        "first-autocorrelation-inequality": ("autocorr1_alphaevolve_600",),
        "second-autocorrelation-inequality": ("autocorr2_alphaevolve_50",),
        "third-autocorrelation-inequality": ("autocorr3_alphaevolve_400",),
    }
)
"""Constructions that come with MILO, worst first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """A frozen construction, the target value, and the construction that has it (if we do)."""

    construction: Array
    target: float
    reference: Array | None = None


def generate(
    names: Sequence[str] = (), count: int = COUNT, seconds: float = SECONDS
) -> Mapping[str, Task]:
    """The tasks by id, `count` of each problem; raises `KeyError` for an unknown problem."""
    known = problems()
    made = (_task(known[name], index, seconds) for name in names or known for index in range(count))
    return MappingProxyType({task.id: task for task in made})


def published(name: str) -> Array:
    """A construction that comes with MILO."""
    return np.array(json.loads(text_of("constructions", f"{name}.json"))["values"])


def start_of(problem: Problem, index: int) -> Start:
    """The start with this index: published ones first where there are any that can be improved,
    then a constant, then random ones."""
    held = PUBLISHED.get(problem.name, ())
    reference = published(held[-1]) if held else None
    best = problem.best_published
    assert best is not None, "every problem of the catalogue has one"
    leader = best.value
    if index < len(held):
        return Start(construction=published(held[index]), target=leader)
    landscape = landscape_of(problem.name)
    rng = np.random.default_rng([index, len(problem.name)])
    like = np.full(SIZES.get(problem.name, (STEPS,)), 0.5)
    flat = isinstance(landscape, Scaled) and index == len(held)
    start = landscape.repair(like) if flat else landscape.random(rng, like)
    if reference is None:
        return Start(construction=start, target=leader)
    value = verify(problem, candidate_of(problem, reference)).value
    return Start(construction=start, target=value, reference=reference)


def _task(problem: Problem, index: int, seconds: float) -> Task:
    start = start_of(problem, index)
    frozen = verify(problem, candidate_of(problem, start.construction))
    expected = {
        "problem": problem.name,
        "start": frozen.value,
        "target": start.target,
        "most": MOST,
    }
    return Task(
        id=f"{problem.name}-{index:03d}",
        instruction=_instruction(problem, frozen.value),
        family=problem.name,
        workspace=_workspace(problem, index, start.construction),
        tests=_tests(expected),
        solution=_solution(problem, start.reference),
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        limits=replace(LIMITS, agent_timeout_s=seconds),
        needs=NEEDS,
    )


def _instruction(problem: Problem, value: float) -> str:
    return (
        f"`construction.json` holds a construction of the open problem {problem.title!r} in the "
        f"arena's format, with the value {value!r}; {problem.direction} it. `optimizer/` holds a "
        f"program that improves the construction in the current folder: run "
        f"`python3 optimizer/main.py`, or write a better one. Leave the best construction in "
        f"`construction.json`; functions may have up to {MOST} steps. The time is limited."
    )


def _workspace(problem: Problem, index: int, construction: Array) -> FileTree:
    given = {"problem": problem.name, "most": MOST, "seed": index}
    program = optimizer(text_of("harness", "schedules", f"{PARENT}.py"))
    files = {f"optimizer/{path}": program[path] for path in program}
    return FileTree(files).with_texts(
        {
            "problem.json": json.dumps(given) + "\n",
            "construction.json": json.dumps(candidate_of(problem, construction)) + "\n",
        }
    )


def _tests(expected: Mapping[str, object]) -> FileTree:
    texts = {
        **package_files("problems"),
        "check.py": text_of("verifier", "check.py"),
        "expected.json": json.dumps(expected) + "\n",
    }
    script = File(text_of("verifier", "test.sh").encode(), executable=True)
    return FileTree({**FileTree.of_texts(texts), "test.sh": script})


def _solution(problem: Problem, reference: Array | None) -> FileTree:
    if reference is None:
        return FileTree()
    text = json.dumps(candidate_of(problem, reference))
    script = f"#!/bin/bash\ncat > construction.json <<'END'\n{text}\nEND\n"
    return FileTree({"solve.sh": File(script.encode(), executable=True)})
