"""A whole run whose mutator is a coding agent: recorded once, then replayed without its model.

The agent is a program of a few lines that puts the time into what it asks, as real ones do, and
does what its model says. Its model says something else each time it is asked, so only a recording
gives the same lineage again.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from cli_scene import ScriptedEditor, one_file, station

from milo.agents.cli_agent import CliAgentMutator
from milo.core.budget import Budget
from milo.core.errors import ReplayMiss
from milo.core.events import CandidateProposed
from milo.core.plan import AgentsPlan, RunPlan, StrategyPlan
from milo.core.population import Population
from milo.core.ports import Completion, Upstream
from milo.gateway.replay_upstream import ReplayUpstream
from milo.runtime.driver import Driver, Watcher
from milo.runtime.parts import HostParts
from milo.runtime.seeding import Seed
from milo.runtime.stage import InlineStage
from milo.search.rules import RulesOrchestrator
from milo.testing.fake_parts import FakeParts, MemoryReplay
from milo.testing.landscape import (
    GENES_FILE,
    LandscapeRunner,
    landscape_harness,
    landscape_suite,
)
from milo.testing.memory_records import MemoryRecords

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

GENES = ("a", "b")
AGENT = f"""
import json, sys, time, urllib.request
words = sys.argv[3]
content = f"It is {{time.time()}} o'clock. {{words}}"
body = json.dumps({{"messages": [{{"role": "user", "content": content}}]}}).encode()
head = {{"Content-Type": "application/json", "Authorization": "Bearer " + sys.argv[2]}}
request = urllib.request.Request(sys.argv[1] + "/v1/chat/completions", body, head)
said = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
genes = json.load(open("harness/{GENES_FILE}"))
gene, strength = said.split()
genes[gene] = int(strength)
json.dump(genes, open("harness/{GENES_FILE}", "w"))
open("CHANGE.md", "w").write("# " + said)
"""


@dataclass
class Whims(ScriptedEditor):
    """Names some gene and how strong it is to be."""

    rng: random.Random = field(default_factory=random.SystemRandom)

    async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
        self.words = f"{self.rng.choice(GENES)} {self.rng.randrange(10**6)}"
        return await super().complete(request, scope, nth)


def agent(upstream: Upstream, words: str) -> CliAgentMutator:
    command = ["python3", "{home}/agent.py", "{base_url}", "{token}", words]
    return CliAgentMutator(one_file(AGENT, command=command), "own:m", station(upstream))


def run(upstream: Upstream, words: str = "Which gene?", recording: object = None) -> MemoryRecords:
    """Three children of one island."""
    records = MemoryRecords()
    parts = FakeParts(
        plan=RunPlan(
            run="test",
            seed=3,
            strategy=StrategyPlan(islands=1, orchestrator=False),
            agents=AgentsPlan(mutators=("own:m",)),
            budget=Budget(rounds=3),
        ),
        the_suite=landscape_suite(6, GENES),
        records=records,
        runner=LandscapeRunner(),
        mutators={"own:m": agent(upstream, words)},
        the_orchestrator=RulesOrchestrator(),
        host_parts=HostParts,
        recording=recording,
    )
    seeds = [Seed(name="s", harness=landscape_harness({"a": 0}, "s"))]
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    asyncio.run(Driver(parts, InlineStage(parts), seeds, watcher).run())
    return records


def children(records: MemoryRecords) -> list[CandidateProposed]:
    events = [record.event for record in records.journal]
    return [e for e in events if isinstance(e, CandidateProposed) and e.parents]


def test_a_run_with_a_coding_agent_replays_to_the_identical_lineage() -> None:
    model = Whims()
    recorded = run(model)
    made = children(recorded)
    assert [child.candidate for child in made] == ["i1.1", "i1.2", "i1.3"]
    assert all(child.harness and child.change.touched == (GENES_FILE,) for child in made)
    assert set(recorded.sessions) >= {f"mutator/i1.{n}/0" for n in (1, 2, 3)}
    recording = MemoryReplay(recorded)
    replay = ReplayUpstream(model.model, recording.exchanges, loosely=True)
    again = run(replay, recording=recording)
    assert children(again) == made
    assert len(model.asked) == 3, "a replay may not call the model"
    assert Population.of(again.journal).winner == Population.of(recorded.journal).winner


def test_an_agent_that_asks_something_else_ends_the_replay() -> None:
    recording = MemoryReplay(run(Whims()))
    replay = ReplayUpstream("scripted/editor", recording.exchanges, loosely=True)
    with pytest.raises(ReplayMiss, match=r"scope 'mutator/i1\.1/0', call 0: field messages"):
        run(replay, "Which one, please?", recording)
