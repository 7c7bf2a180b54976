"""Looks the raw objectives of a scored candidate up in its traces, for suites that have them."""

from __future__ import annotations

from collections.abc import Collection

from milo.core.objective import Objective, objective_in
from milo.store import RunReader

ENOUGH = 60
"""Attempts without any objective, after which a run is taken to have none: reading every trace of
a large run would cost more than the page."""


class ObjectiveLook:
    """Remembers whether a run has objectives at all. One owner; readers may be opened anew."""

    def __init__(self) -> None:
        self._read = 0
        self._found = False

    def of(self, reader: RunReader, harness: str, tasks: Collection[str]) -> tuple[Objective, ...]:
        """The objectives of a harness's attempts on these tasks, in the order of recording."""
        if not self._found and self._read >= ENOUGH:
            return ()
        outcomes = [o for o in reader.attempts.of_harness(harness) if o.key.task in tasks]
        self._read += len(outcomes)
        reports = [reader.traces.get(o.trace).report for o in outcomes if o.trace in reader.traces]
        found = tuple(one for report in reports if (one := objective_in(report)) is not None)
        self._found = self._found or bool(found)
        return found
