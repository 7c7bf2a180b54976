"""Runs on disk for the pages: a real search over the landscape, and synthetic ones of any size."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from milo.core.attempt import AttemptKey, Outcome, Status, Timings, Usage
from milo.core.budget import Budget
from milo.core.events import CandidateProposed, CandidateScored, Event, Record
from milo.core.evidence import Exchange, Trace
from milo.core.objective import Objective
from milo.core.plan import AgentsPlan, ClusterPlan, RunPlan, StrategyPlan
from milo.core.population import Population
from milo.runtime.driver import Driver, Watcher
from milo.runtime.parts import HostParts
from milo.runtime.seeding import Seed
from milo.runtime.stage import InlineStage
from milo.search.rules import RulesOrchestrator
from milo.store import RunReader, RunStore, encode_plan
from milo.testing.fake_parts import FakeParts
from milo.testing.landscape import (
    GeneMutator,
    LandscapeRunner,
    landscape_harness,
    landscape_suite,
)
from milo.testing.synthetic_run import SyntheticRun
from milo.views.page_file import write_page


class Ticking:
    """A clock that moves two seconds at every look."""

    def __init__(self) -> None:
        self.at = 1_700_000_000.0

    def now(self) -> float:
        self.at += 2.0
        return self.at


def synthetic(candidates: int, *, seed: int = 3, tasks: int = 8) -> list[tuple[str, list[Event]]]:
    """The groups of a synthetic run, each candidate with a real harness's digest."""
    run = SyntheticRun(
        candidates=candidates,
        rng=np.random.default_rng(seed),
        islands=3,
        tasks=tasks,
        keep_outcomes=False,
    )
    return [(shard, list(events)) for shard, events in run.groups()]


class RunWriter:
    """Writes groups of events with the harnesses, attempts and traces that belong to them.

    `objective` gives an attempt's raw objective from its task and reward, where the suite has one.
    """

    def __init__(
        self, path: Path, objective: Callable[[str, float], Objective] | None = None
    ) -> None:
        self._objective = objective
        self.store = RunStore.create(
            path, path.name, encode_plan(RunPlan()), clock=Ticking(), min_free_bytes=0
        )
        self.population = Population()
        self._epochs: dict[str, int] = {}
        self._digests: dict[str, str] = {}

    def write(self, groups: Sequence[tuple[str, Sequence[Event]]]) -> None:
        """Append the groups."""
        for shard, events in groups:
            real = [self._realise(event) for event in events]
            if shard not in self._epochs:
                self._epochs[shard] = self.store.claim(shard)
            self.store.append(shard, self._epochs[shard], real)
            for event in real:
                self.population.apply(event)
                if isinstance(event, CandidateScored):
                    self._attempt(event)

    def close(self) -> None:
        """Give the run back."""
        self.store.close()

    def _realise(self, event: Event) -> Event:
        if not isinstance(event, CandidateProposed):
            return event
        number = len(self._digests)
        harness = landscape_harness({"a": number, "b": len(event.parents)}, event.candidate)
        self.store.put_harness(event.candidate, harness, event.parents, event.change.title)
        self._digests[event.candidate] = harness.digest
        return replace(event, harness=harness.digest)

    def _attempt(self, event: CandidateScored) -> None:
        outcomes = []
        for task, score in event.scores.items():
            key = AttemptKey(
                harness=self._digests[event.candidate],
                task=task,
                task_digest="d",
                model="synthetic@0",
                index=0,
            )
            exchange = Exchange(
                request={"messages": [{"role": "user", "content": f"solve {task} <b>now</b>"}]},
                response={"choices": [{"message": {"content": f"answer of {event.candidate}"}}]},
                status=200,
                seconds=0.5,
            )
            trace = Trace(
                exchanges=(exchange,), stdout=f"{event.candidate} on {task}",
                report=self._report(task, score.reward),
                verifier_output="EXPECTED-ANSWER",
            )  # fmt: skip
            outcomes.append(
                Outcome(
                    key=key,
                    status=Status.COMPLETED,
                    reward=score.reward,
                    resolved=score.resolved > 0,
                    usage=Usage(uncached_input=int(score.tokens), calls=1),
                    timings=Timings(agent_s=score.latency_s),
                    trace=self.store.put_trace(trace),
                )
            )
        self.store.append_attempts(outcomes)

    def _report(self, task: str, reward: float) -> str:
        if self._objective is None:
            return "checked"
        return f"{self._objective(task, reward).line}\nchecked"


def toy(task: str, reward: float) -> Objective:
    """Two problems: one to minimise, one to maximise."""
    if int(task[-1]) % 2:
        return Objective("toy-min", 0.381 - reward * 1e-6, 0.381, 0.3809)
    return Objective("toy-max", 2.6 + reward / 7, 2.6, 2.7)


def write_synthetic(
    path: Path, candidates: int, objective: Callable[[str, float], Objective] | None = None
) -> Path:
    """A whole synthetic run on disk."""
    writer = RunWriter(path, objective)
    writer.write(synthetic(candidates))
    writer.close()
    return path


def write_searched(path: Path, rounds: int = 6) -> Path:
    """A real search: islands, mutators, rules and admission at work on the landscape."""
    genes = ("a", "b", "c", "d")
    plan = RunPlan(
        run=path.name,
        seed=7,
        strategy=StrategyPlan(patience=2),
        agents=AgentsPlan(mutators=("genes", "genes2")),
        budget=Budget(rounds=rounds),
        cluster=ClusterPlan(slots=8),
    )
    records = RunStore.create(path, path.name, encode_plan(plan), clock=Ticking(), min_free_bytes=0)
    parts = FakeParts(
        plan=plan,
        the_suite=landscape_suite(16, genes),
        records=records,  # type: ignore[arg-type]
        runner=LandscapeRunner(),
        mutators={
            "genes": GeneMutator(genes=genes),
            "genes2": GeneMutator(genes=genes[:2], name="genes2"),
        },
        the_orchestrator=RulesOrchestrator(),
        host_parts=HostParts,
    )
    seeds = [
        Seed(name=f"s{n}", harness=landscape_harness({genes[n]: n % 2}, f"s{n}")) for n in range(3)
    ]
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    driver = Driver(parts, InlineStage(parts), seeds, watcher)
    # In a thread of its own: Playwright keeps an event loop on the tests' thread.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(driver.run())).result()
    records.close()
    return path


def page_of(run: Path, **options: int) -> str:
    target = run.parent / f"page-{len(list(run.parent.iterdir()))}.html"
    with RunReader(run) as reader, target.open("w", encoding="utf-8") as out:
        write_page(reader, out, now=0.0, **options)
    return target.as_uri()


def records_of(run: Path) -> list[Record]:
    with RunReader(run) as reader:
        return list(reader.records())
