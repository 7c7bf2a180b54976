"""How busy the slots are kept, through real Ray: hosts, dispatcher, islands, records.

Run apart from the tests: ``scripts/bench scheduling [rollouts] [waiting] [islands] [peers]``, all
four where none is named; the tests run ``sample``. Attempts and proposals only wait, so that what
is measured is the scheduling. Each attempt says in its trace when it ran; every figure is made of
that, the bare process pool's too. The bars: 200 rollouts on 64 slots over 4 hosts within 1.10 x
longest-first list scheduling and 600 MB over all Ray workers (PSS: shared pages counted once);
2,000 rollouts waiting at once on one host; three islands whose evaluations differ 5 x in length
keep the slots 90 % busy until the last round; where proposing takes as long as evaluating, one
island with ``pipeline_depth=4`` keeps 4 slots 85 % busy.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

from many_nodes import Memory, many_nodes, workers_memory
from paced import (
    PacedParts,
    Ran,
    busy_share,
    list_schedule_s,
    most_at_once,
    paced_parts,
    paced_suite,
    ran_in,
)

from milo.core.budget import Budget
from milo.core.events import RoundEnded
from milo.core.plan import AdmissionPlan, AgentsPlan, ClusterPlan, RunPlan, StrategyPlan
from milo.core.task import Suite
from milo.runtime.driver import Driver, Watcher
from milo.runtime.parts import EvaluationRequest
from milo.runtime.ray_stage import RayStage
from milo.runtime.seeding import Seed
from milo.store import RunReader
from milo.testing.landscape import landscape_harness

PLAIN = AdmissionPlan(alpha=1.0, bootstraps=1)
"""The plain rule, as others admit: what is measured is not how long 200 bootstraps take."""

PSS_BAR_MB = 600
WITHIN_BAR, ISLANDS_BAR, PEERS_BAR = 1.10, 0.90, 0.85


def plan_of(slots: int, budget: Budget, *, islands: int = 1, depth: int = 1) -> RunPlan:
    """A plan of waiting on hosts that offer ``container``."""
    return RunPlan(
        strategy=StrategyPlan(
            islands=islands, orchestrator=False, pipeline_depth=depth, admission=PLAIN
        ),
        agents=AgentsPlan(mutators=("paced",)),
        budget=budget,
        cluster=ClusterPlan(slots=slots, resource="container"),
    )


# --- attempts alone ------------------------------------------------------------------------------


class Bout(NamedTuple):
    """Attempts that were asked for at once: when, what ran, and the workers' memory meanwhile."""

    asked: float
    ran: Sequence[Ran]
    memory: Memory

    @property
    def makespan_s(self) -> float:
        """From the request to the end of the last attempt."""
        return max(r.ended for r in self.ran) - self.asked


async def bouts(parts: PacedParts, times: int) -> list[Bout]:
    """Evaluate the search split several times, each time anew."""
    stage, asked = RayStage(parts), []
    await stage.open()
    memory = []
    try:
        for replicate in range(times):
            asked.append(time.time())
            working = asyncio.create_task(
                stage.peers.dispatcher.evaluate(request(parts.suite(), replicate))
            )
            await asyncio.wait([working], timeout=2.0)
            memory.append(await asyncio.to_thread(workers_memory))
            assert not (await working).missing
    finally:
        await stage.close()
    ran, ends = ran_in(Path(parts.plan.run)), [*asked[1:], float("inf")]
    return [
        Bout(begun, [r for r in ran if begun <= r.begun < end], held)
        for begun, end, held in zip(asked, ends, memory, strict=True)
    ]


def request(suite: Suite, replicate: int) -> EvaluationRequest:
    """One attempt on each task."""
    return EvaluationRequest(
        island="bench",
        candidate="paced",
        harness=landscape_harness({}),
        split="search",
        tasks=suite.splits.search,
        k=1,
        replicate=replicate,
    )


def rollouts(folder: Path, count: int, slots: int, hosts: int, longest_s: float) -> float:
    """Attempts of unequal length over several hosts; makespan by the bound, durations known."""
    rng = random.Random(count)
    seconds = [rng.uniform(longest_s / 10, longest_s) for _ in range(count)]
    suite, each = paced_suite(seconds), slots // hosts
    parts = paced_parts(plan_of(each, Budget(attempts=10**9)), suite, folder / "rollouts")
    with many_nodes(*[{"container": each}] * hosts):
        first, known = asyncio.run(bouts(parts, 2))
    bound = list_schedule_s(seconds, slots)
    assert len({r.host for r in known.ran}) == hosts
    print(f"{count} rollouts of {longest_s / 10:g}-{longest_s:g} s, {slots} slots on {hosts} hosts")
    print(f"  longest-first bound {bound:.2f} s; work alone {sum(seconds) / slots:.2f} s")
    print(f"  durations unknown {first.makespan_s:.2f} s ({first.makespan_s / bound:.3f} x)")
    print(f"  durations known {known.makespan_s:.2f} s ({known.makespan_s / bound:.3f} x)")
    told(known.memory)
    assert known.memory.pss_mb < PSS_BAR_MB
    return known.makespan_s / bound


def told(memory: Memory) -> None:
    """Print what the workers hold."""
    print(
        f"  {memory.workers} workers: {memory.pss_mb:.0f} MB PSS, {memory.rss_mb:.0f} MB resident"
    )


def waiting(folder: Path, count: int, seconds: float) -> int:
    """Many attempts that wait on one host; how many of them at one moment."""
    suite = paced_suite([seconds] * count)
    parts = paced_parts(plan_of(count, Budget(attempts=10**9)), suite, folder / "waiting")
    with many_nodes({"container": count}):
        (bout,) = asyncio.run(bouts(parts, 1))
    most = most_at_once(bout.ran)
    print(f"{count} rollouts of {seconds:g} s on one host: {most} at once, {bout.makespan_s:.1f} s")
    told(bout.memory)
    return most


# --- whole searches ------------------------------------------------------------------------------


class Searched(NamedTuple):
    """A whole run: its attempts, and for each island when its rounds ended."""

    ran: Sequence[Ran]
    ended: Mapping[str, Sequence[float]]


def search(parts: PacedParts, seeds: Sequence[Seed]) -> Searched:
    """Drive a run to its end on one host."""
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    with many_nodes({"container": parts.plan.cluster.slots}):
        ending = asyncio.run(Driver(parts, RayStage(parts), seeds, watcher).run())
    assert not ending.interrupted
    run = Path(parts.plan.run)
    ended: dict[str, list[float]] = {}
    with RunReader(run) as reader:
        for record in reader.records():
            if isinstance(record.event, RoundEnded):
                ended.setdefault(record.shard, []).append(record.time)
    return Searched(ran_in(run), ended)


def stretched(*factors: int) -> list[Seed]:
    """Seeds whose attempts take so many times as long as others'."""
    return [
        Seed(name=f"s{n}", harness=landscape_harness({"stretch": factor, f"own{n}": 1}, f"s{n}"))
        for n, factor in enumerate(factors)
    ]


def islands(folder: Path, attempts: int, unit_s: float, think_s: float) -> float:
    """Three islands whose evaluations differ five times; the busy share until the last round.

    That is from the end of the first island's seed scoring to the moment at which the first
    island begins its last round.
    """
    slots = 8
    suite = paced_suite([unit_s * (1 + nth % 3) / 2 for nth in range(24)])
    plan = plan_of(slots, Budget(attempts=attempts), islands=3)
    parts = paced_parts(plan, suite, folder / "islands", think_s)
    done = search(parts, stretched(1, 2, 5))
    begun = min(times[0] for times in done.ended.values())
    until = min(times[-2] for times in done.ended.values())
    share = busy_share(done.ran, slots, begun, until)
    rounds = ", ".join(str(len(times) - 1) for times in done.ended.values())
    print(f"3 islands, evaluations of 1 : 2 : 5, {think_s:g} s to propose, {slots} slots")
    print(f"  rounds {rounds}; busy {share:.1%} over {until - begun:.1f} s")
    return share


class Case(NamedTuple):
    """How many islands, and how many children of each are proposed at once."""

    islands: int
    depth: int


CASES = (Case(1, 1), Case(4, 1), Case(4, 2), Case(1, 4))


def between(ran: Sequence[Ran], slots: int) -> float:
    """The busy share after the first evaluation has ended and before the last one begins."""
    long = [r for r in ran if r.ended - r.begun > 0.05]  # not the validation's quick ones
    return busy_share(long, slots, min(r.ended for r in long), max(r.begun for r in long))


def bare_pool(evaluations: int, slots: int, seconds: float) -> list[Ran]:
    """A fresh process for each proposal with its evaluation, as many at once as slots."""
    words = [sys.executable, str(Path(__file__).with_name("bare_pool.py"))]
    numbers = [str(number) for number in (evaluations, slots, seconds)]
    said = subprocess.run([*words, *numbers], capture_output=True, text=True, check=True).stdout
    return [Ran("pool", begun, ended) for begun, ended in json.loads(said)]


def peers(folder: Path, evaluations: int, seconds: float, cases: Sequence[Case]) -> float:
    """Proposing takes as long as evaluating: a bare pool, and islands; the last case's share."""
    slots = 4
    print(
        f"{seconds:g} s to propose, {seconds:g} s to evaluate, {slots} slots, {evaluations} times"
    )
    pool = between(bare_pool(evaluations, slots, seconds), slots)
    print(f"  bare pool of processes: busy {pool:.1%}")
    share = 0.0
    for n, depth in cases:
        budget = Budget(rounds=-(-evaluations // n))
        parts = paced_parts(
            plan_of(slots, budget, islands=n, depth=depth),
            paced_suite([seconds]),
            folder / f"peers-{n}-{depth}",
            seconds,
        )
        share = between(search(parts, stretched(*[1] * n)).ran, slots)
        print(f"  islands={n} pipeline_depth={depth}: busy {share:.1%}")
    return share


# --- which --------------------------------------------------------------------------------------


def sample(folder: Path) -> None:
    """Small and quick, with room for a busy machine: what the tests run."""
    assert rollouts(folder, 40, 16, 2, 1.0) <= 1.5
    assert waiting(folder, 300, 4.0) == 300
    assert peers(folder, 16, 1.0, (Case(1, 4),)) >= 0.6


def main(names: Sequence[str]) -> None:
    """Run what is named, print, and hold it to its bar."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if list(names) == ["sample"]:
            sample(folder)
            return
        if not names or "rollouts" in names:
            assert rollouts(folder, 200, 64, 4, 5.0) <= WITHIN_BAR
        if not names or "waiting" in names:
            assert waiting(folder, 2000, 20.0) == 2000
        if not names or "islands" in names:
            assert islands(folder, 1200, 0.5, 1.0) >= ISLANDS_BAR
        if not names or "peers" in names:
            assert peers(folder, 50, 1.0, CASES) >= PEERS_BAR


if __name__ == "__main__":
    main(sys.argv[1:])
