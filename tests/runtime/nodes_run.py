"""A run on two nodes of which one is removed, and to which one is added; prints what was seen.

Run by test_nodes.py in a process of its own: ``python nodes_run.py RUN``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from inline import GENES
from many_nodes import add, many_nodes
from paced import paced_parts, paced_suite, ran_in
from ray.cluster_utils import Cluster

from milo.core.budget import Budget
from milo.core.plan import AgentsPlan, ClusterPlan, RunPlan, StrategyPlan
from milo.runtime.driver import Driver, Watcher
from milo.runtime.parts import Load
from milo.runtime.ray_stage import RayStage
from milo.runtime.seeding import Seed
from milo.store import RunReader
from milo.testing.landscape import landscape_harness

SLOTS = 4
REMOVE_AT, ADD_AT = 20, 40


def plan() -> RunPlan:
    """Two islands of a few rounds on hosts that offer ``container``."""
    return RunPlan(
        strategy=StrategyPlan(islands=2, orchestrator=False),
        agents=AgentsPlan(mutators=("paced",)),
        budget=Budget(rounds=6),
        cluster=ClusterPlan(slots=SLOTS, resource="container"),
    )


async def change_nodes(cluster: Cluster, seen: list[Load]) -> None:
    """Remove the second node in the middle of its attempts, then add a third."""
    await reached(seen, REMOVE_AT)
    await asyncio.to_thread(cluster.remove_node, next(iter(cluster.worker_nodes)), False)
    await reached(seen, ADD_AT)
    add(cluster, {"container": SLOTS, "third": 1})  # sets signal handlers: not in a thread


async def reached(seen: list[Load], attempts: int) -> None:
    """Until so many attempts were made."""
    while not seen or seen[-1].attempts < attempts:
        await asyncio.sleep(0.05)


async def main(run: Path) -> None:
    """Drive the run, change its nodes meanwhile, print."""
    seen: list[Load] = []
    seeds = [
        Seed(name=f"s{n}", harness=landscape_harness({gene: 1}, f"s{n}"))
        for n, gene in enumerate(GENES[:2])
    ]
    with many_nodes({"container": SLOTS, "first": 1}, {"container": SLOTS, "second": 1}) as cluster:
        parts = paced_parts(plan(), paced_suite([0.5] * 8, others=4), run)
        watcher = Watcher(on_records=lambda _: None, on_load=lambda load, _: seen.append(load))
        driver = Driver(parts, RayStage(parts), seeds, watcher)
        changing = asyncio.create_task(change_nodes(cluster, seen))
        ending = await driver.run()
        await asyncio.wait_for(changing, 1.0)
    with RunReader(run) as reader:
        outcomes = list(reader.attempts.iter())
        rounds = [state.round for state in reader.population().topology.islands.values()]
    hosts: dict[str, int] = {}
    for attempt in ran_in(run):
        hosts[attempt.host] = hosts.get(attempt.host, 0) + 1
    said = {
        "interrupted": ending.interrupted,
        "rounds": rounds,
        "invalid": sum(not outcome.is_valid for outcome in outcomes),
        "repeated": len(outcomes) - len({outcome.key for outcome in outcomes}),
        "hosts": hosts,
        "slots": sorted({load.slots for load in seen}),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
