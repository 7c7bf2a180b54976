"""Objectives are looked for in a run's traces only as long as there may be any."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from milo.core.evidence import Trace
from milo.core.objective import Objective
from milo.views.objective_look import ENOUGH, ObjectiveLook

VALUE = Objective("p", 1.5, 2.0, 1.0)


class Reader:
    """A run whose harnesses have four attempts each; counts what is asked of it."""

    def __init__(self, report: str, traces: bool = True) -> None:
        self.asked = 0
        self._report, self._traces = report, traces
        self.attempts = self.traces = self

    def of_harness(self, digest: str) -> list[Any]:
        self.asked += 1
        return [SimpleNamespace(key=SimpleNamespace(task=f"t{n}"), trace="x") for n in range(4)]

    def __contains__(self, digest: str) -> bool:
        return self._traces

    def get(self, digest: str) -> Trace:
        return Trace(report=self._report)


def look(reader: Reader, times: int) -> list[tuple[Objective, ...]]:
    found = ObjectiveLook()
    return [found.of(reader, f"h{n}", ("t0", "t1")) for n in range(times)]  # type: ignore[arg-type]


def test_the_objectives_of_the_asked_tasks_are_found() -> None:
    reader = Reader(f"{VALUE.line}\nchecked")
    assert look(reader, 100) == [(VALUE, VALUE)] * 100
    assert reader.asked == 100


def test_a_run_without_any_is_soon_left_alone() -> None:
    """Else the page of a large run would read every attempt and trace for nothing."""
    for reader in (Reader("checked"), Reader("", traces=False)):
        assert look(reader, 200) == [()] * 200
        assert reader.asked == ENOUGH // 2
