"""The raw objective of a task, at full precision, and its course over time (SPEC §5, at the end).

Where a task has an objective beside its reward, the record holds it in two places. The verifier's
public report (`Trace.report`) begins with one line for what was accepted:

    objective PROBLEM VALUE START TARGET

The harness's output (`Trace.stdout`) has a line ``SECONDS VALUE`` for each new best of its own.
Whether smaller or larger is better is read from START and TARGET.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

MARK = "objective"
_STEP = re.compile(r"^(\d+(?:\.\d+)?) (-?\d\S*)$", re.MULTILINE)


class Objective(NamedTuple):
    """One accepted result: the problem in one word, the value, those of start and target."""

    problem: str
    value: float
    start: float
    target: float

    @property
    def line(self) -> str:
        """As a report holds it."""
        numbers = " ".join(repr(number) for number in (self.value, self.start, self.target))
        return f"{MARK} {self.problem} {numbers}"

    def gain(self, over: float) -> float:
        """By how much the value is better than another; negative where it is worse."""
        return self.value - over if self.target > self.start else over - self.value


class Step(NamedTuple):
    """A new best at some seconds; whose it is, in words."""

    seconds: float
    value: float
    who: str = ""


def objective_in(report: str) -> Objective | None:
    """What a report's first line says; None where it says nothing."""
    words = report.partition("\n")[0].split(" ")
    if len(words) != 5 or words[0] != MARK:
        return None
    try:
        value, start, target = (float(word) for word in words[2:])
    except ValueError:
        return None
    fit = all(map(math.isfinite, (value, start, target))) and start != target
    return Objective(words[1], value, start, target) if fit else None


def steps_in(stdout: str) -> tuple[Step, ...]:
    """The bests that a harness printed, in order; lines of another form are passed over."""
    found = []
    for seconds, value in _STEP.findall(stdout):
        try:
            found.append(Step(float(seconds), float(value)))
        except ValueError:
            continue
    return tuple(step for step in found if math.isfinite(step.value))


def ratchet(timed: Iterable[tuple[float, Objective, str]]) -> dict[str, tuple[Step, ...]]:
    """The best so far of every problem: a step for each result that beat all before it.

    `timed` holds seconds, result and whose it is, in any order. The first step of a problem is the
    best frozen start, at 0 seconds.
    """
    ordered = sorted(timed, key=lambda one: one[0])
    courses: dict[str, list[Step]] = {}
    for _, result, _ in ordered:
        course = courses.setdefault(result.problem, [Step(0.0, result.start)])
        if result._replace(value=result.start).gain(course[0].value) > 0:
            course[0] = Step(0.0, result.start)
    for seconds, result, who in ordered:
        if result.gain(courses[result.problem][-1].value) > 0:
            courses[result.problem].append(Step(seconds, result.value, who))
    return {problem: tuple(course) for problem, course in courses.items()}
