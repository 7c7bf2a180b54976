"""A dispatcher's surroundings: hosts that run landscape attempts, records in memory, a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from milo.core.attempt import AttemptKey
from milo.core.budget import Budget
from milo.core.harness import Harness
from milo.core.plan import RunPlan
from milo.core.ports import AttemptJob, AttemptResult, Exit
from milo.core.task import Task
from milo.core.tree import FileTree
from milo.runtime.parts import EvaluationRequest, HostParts
from milo.runtime.recorder import Recorder
from milo.search.rules import RulesOrchestrator
from milo.testing.fake_parts import FakeParts
from milo.testing.landscape import LandscapeRunner, landscape_harness, landscape_suite
from milo.testing.memory_records import MemoryRecords

SUITE = landscape_suite(8, ("a", "b"))
Play = Callable[[AttemptKey], Awaitable[AttemptResult | None]]


class ScriptedHost:
    """A host that runs landscape attempts, after `play` had its say."""

    def __init__(self, name: str, play: Play | None = None) -> None:
        self.name = name
        self.runner = LandscapeRunner()
        self.play = play
        self.most = 0
        self.running = 0

    async def run(self, key: AttemptKey, harness: Harness, task: Task) -> AttemptResult:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            played = await self.play(key) if self.play else None
            job = AttemptJob(key=key, harness=harness, task=task)
            return played or await self.runner.run(job)
        finally:
            self.running -= 1

    async def smoke(self, harness: Harness) -> str:
        await self._play_beside()
        return f"smoked on {self.name}"

    async def _play_beside(self) -> None:
        if self.play:
            await self.play(AttemptKey(harness="", task="", task_digest="", model="", index=0))

    async def shell(self, tree: FileTree, command: str, timeout_s: float) -> tuple[Exit, FileTree]:
        await self._play_beside()
        return Exit(code=0, seconds=0.0, stdout=command), tree


def parts_of(records: MemoryRecords) -> FakeParts:
    return FakeParts(
        plan=RunPlan(budget=Budget(rounds=1)),
        the_suite=SUITE,
        records=records,
        runner=LandscapeRunner(),
        mutators={},
        the_orchestrator=RulesOrchestrator(),
        host_parts=HostParts,
    )


def recorder_of(records: MemoryRecords) -> Recorder:
    return Recorder(parts_of(records), "m")


def request(split: str = "search", k: int = 2) -> EvaluationRequest:
    return EvaluationRequest(
        island="i1",
        candidate="i1.0",
        harness=landscape_harness({"a": 1}),
        split=split,
        tasks=SUITE.splits.validation if split == "validation" else SUITE.splits.search,
        k=k,
    )
