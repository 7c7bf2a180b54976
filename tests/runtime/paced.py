"""Work of known length for measurements: attempts and proposals that only wait.

A task says how long an attempt on it takes, a harness by how much it stretches that; each attempt
leaves in its trace when it ran and on which host, so that whoever reads the records can tell how
busy the slots were, by no clock but the attempts' own.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from inline import StoredParts, stored_parts

from milo.core.attempt import Outcome, Status, Timings, Usage
from milo.core.events import Change
from milo.core.evidence import Brief, Proposal, Trace
from milo.core.harness import Harness
from milo.core.plan import RunPlan
from milo.core.ports import AttemptJob, AttemptResult, Workshop
from milo.core.task import Splits, Suite, Task
from milo.runtime.parts import HostParts
from milo.store import RunReader, RunStore
from milo.testing.landscape import genes_of, landscape_harness


class Ran(NamedTuple):
    """One attempt: its host, and when it ran (seconds since the epoch)."""

    host: str
    begun: float
    ended: float


@dataclass(frozen=True, kw_only=True)
class PacedRunner:
    """Implements `AttemptRunner`: waits as long as task and harness say; solves nothing."""

    host: str

    async def run(self, job: AttemptJob) -> AttemptResult:
        """One attempt."""
        seconds = float(job.task.instruction.split()[-1]) * genes_of(job.harness).get("stretch", 1)
        begun = time.time()
        await asyncio.sleep(seconds)
        outcome = Outcome(
            key=job.key,
            status=Status.COMPLETED,
            reward=0.0,
            resolved=False,
            usage=Usage(uncached_input=1, output=1, calls=1),
            timings=Timings(agent_s=seconds),
        )
        ran = json.dumps(Ran(self.host, begun, time.time()))
        return AttemptResult(outcome=outcome, trace=Trace(report=ran))

    async def smoke(self, harness: Harness) -> str:
        """Always starts."""
        return ""


@dataclass(frozen=True, kw_only=True)
class PacedMutator:
    """Implements `Mutator`: thinks for a while, then changes a number that means nothing."""

    think_s: float
    name: str = "paced"

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """A child that differs from every other."""
        await asyncio.sleep(self.think_s)
        genes = {**genes_of(brief.parents[0].harness), "mark": brief.seed}
        return Proposal(tree=landscape_harness(genes).tree, change=Change(title="mark"))


class WallClock:
    """The machine's time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()


class PacedParts(StoredParts):
    """A run directory on disk with the machine's time, and hosts that only wait."""

    def open_records(self) -> RunStore:  # type: ignore[override]
        """The run directory of the plan."""
        return RunStore.open(Path(self.plan.run), clock=WallClock())

    async def open_host(self, name: str) -> HostParts:
        """A host whose attempts say where they ran."""
        opened: HostParts = await super().open_host(name)
        return HostParts(
            runner=PacedRunner(host=name),
            model=opened.model,
            description=opened.description,
            shell=opened.shell,
            close=opened.close,
        )


def paced_suite(search: Sequence[float], others: int = 1, *, k: int = 1) -> Suite:
    """One task per number of seconds to search on, `others` quick ones to validate and test on."""
    pace = [*search, *([0.01] * 2 * others)]
    tasks = {
        f"t{nth:04d}": Task(id=f"t{nth:04d}", instruction=f"takes {seconds:.6f}")
        for nth, seconds in enumerate(pace)
    }
    ids, n = tuple(tasks), len(search)
    splits = Splits(search=ids[:n], validation=ids[n : n + others], test=ids[n + others :])
    return Suite(name="paced", tasks=tasks, splits=splits, k=k)


def paced_parts(plan: RunPlan, suite: Suite, path: Path, think_s: float = 0.0) -> PacedParts:
    """Parts of a run of waiting in a directory that is made here."""
    kept = stored_parts(plan, suite, path, PacedMutator(think_s=think_s))
    fields: dict[str, Any] = dict(vars(kept))
    return PacedParts(**fields)


def ran_in(run: Path) -> list[Ran]:
    """Every attempt on record."""
    with RunReader(run) as reader:
        reports = [reader.traces.get(o.trace).report for o in reader.attempts.iter()]
    return [Ran(*json.loads(report)) for report in reports]


def most_at_once(ran: Iterable[Ran]) -> int:
    """The largest number of attempts that ran at one moment."""
    steps = sorted(step for r in ran for step in ((r.begun, 1), (r.ended, -1)))
    now = most = 0
    for _, change in steps:
        now += change
        most = max(most, now)
    return most


def busy_share(ran: Iterable[Ran], slots: int, begun: float, ended: float) -> float:
    """The share of the slots' time between two moments in which attempts ran."""
    overlaps = (max(0.0, min(r.ended, ended) - max(r.begun, begun)) for r in ran)
    return sum(overlaps) / (slots * (ended - begun))


def list_schedule_s(seconds: Iterable[float], slots: int) -> float:
    """The makespan of longest-first list scheduling (Graham): the bound to measure against."""
    free = [0.0] * slots
    for length in sorted(seconds, reverse=True):
        heapq.heapreplace(free, free[0] + length)
    return max(free)
