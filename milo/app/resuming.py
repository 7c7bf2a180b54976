"""What a resume goes on with: the plan, the changes that it may take, and the seeds on record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from milo.app.config import Change, amend, differences
from milo.core.errors import RunError
from milo.core.plan import RunPlan
from milo.core.population import Population
from milo.runtime.seeding import Seed, are_numbered, given_name, start_name
from milo.store.codec import decode_plan
from milo.store.reader import RunReader

CHANGEABLE = (
    "budget",
    "cluster",
    "tracking",
    "suite.path",
    "model.path",
    "model.base_url",
    "model.key_variable",
    "model.call_seconds",
    "model.parallel",
    "model.threads",
    "model.requests_per_minute",
    "model.tokens_per_minute",
    "model.server.replicas",
    "model.server.gpus",
    "model.server.cpus",
    "model.server.program",
    "model.server.start_minutes",
)
"""How long a run goes on, where its pieces lie and how fast they work. The content of the tasks
and of the model is compared when it goes on; everything else decides what an attempt or a
candidate is, and would mix what can't be compared."""


class OnRecord(NamedTuple):
    """What a run is gone on with; no seeds where it has not started."""

    plan: RunPlan
    seeds: tuple[Seed, ...] = ()


def changes_of(recorded: RunPlan, allow: Sequence[str]) -> tuple[Change, ...]:
    """What the allowed words change in a plan.

    Raises `RunError` where that alters what the run is about.
    """
    if not allow:
        return ()
    changes = differences(recorded, amend(recorded, allow))
    for change in changes:
        if not any(change.key == key or change.key.startswith(f"{key}.") for key in CHANGEABLE):
            raise RunError(
                "--allow-changes",
                f"changes to {', '.join(CHANGEABLE)} (start a new run for any other)",
                str(change),
            )
    return changes


def on_record(reader: RunReader, population: Population) -> OnRecord:
    """The plan that a run follows now (as it started, with what resumes were allowed to change),
    and its seeds as it numbered them, or as they were given where it has not come to that.

    Seeds are read from the run's harnesses: what became of their folders does not matter. Raises
    `RunError` for a run of a version that did not record them.
    """
    started = population.started
    if started is None:
        return OnRecord(plan=decode_plan(reader.plan))
    if not started.seeds:
        found = "none: it was begun by an earlier version"
        raise RunError(f"run {reader.path}", "the names of its seeds on record", found)
    plan, names = decode_plan(population.plan), started.seeds
    settled = are_numbered(population.lineage, plan.strategy.islands, len(names))
    stored = start_name if settled else given_name
    harnesses = [reader.harnesses.get(stored(n)) for n in range(1, len(names) + 1)]
    if settled:  # the best first, so that the names as given would name others
        names = tuple(harness.manifest.name for harness in harnesses)
    seeds = tuple(Seed(name=n, harness=h) for n, h in zip(names, harnesses, strict=True))
    return OnRecord(plan=plan, seeds=seeds)
