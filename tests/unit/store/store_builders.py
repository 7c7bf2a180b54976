"""Small values that the store's tests are made of."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path

from milo.core.attempt import AttemptKey, Outcome, Status, Timings, Usage
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Change,
    Event,
    IslandFounded,
    Verdict,
)
from milo.core.evidence import Exchange
from milo.core.fitness import TaskScore
from milo.core.harness import Harness
from milo.core.plan import RunPlan
from milo.core.tree import File, FileTree
from milo.store import Disk, RunStore, encode_plan

MANIFEST = 'name = "small"\nentry = "python3 main.py"\n'


@dataclass
class FixedClock:
    """A clock that its test moves."""

    time: float = 1_000.5

    def now(self) -> float:
        return self.time


@dataclass
class FailingWrites:
    """A disk with room for so many bytes; the write that does not fit is done in part."""

    room: int
    error: int = errno.ENOSPC
    written: list[int] = field(default_factory=list)

    def __call__(self, descriptor: int, data: bytes) -> int:
        fits = data[: self.room]
        if not fits:
            raise OSError(self.error, os.strerror(self.error))
        count = os.write(descriptor, fits)
        self.room -= count
        return count


def proposed(
    candidate: str, island: str = "a", round_: int = 0, *parents: str
) -> CandidateProposed:
    return CandidateProposed(
        island=island,
        candidate=candidate,
        round=round_,
        parents=parents,
        harness="f" * 64,
        mutator="operators",
        change=Change(title=f"make {candidate}", evidence=("täsk", "☃")),
    )


def scored(candidate: str, island: str = "a") -> CandidateScored:
    score = TaskScore(n=3, reward=1 / 3, resolved=1, tokens=101.5, latency_s=0.1 + 0.2)
    return CandidateScored(
        island=island, candidate=candidate, split="search", scores={"t1": score, "t2": score}
    )


def judged(candidate: str, island: str = "a") -> CandidateJudged:
    return CandidateJudged(
        island=island, candidate=candidate, round=0, verdict=Verdict.SEED, reason="it is the seed"
    )


def key(index: int = 0, harness: str = "a", task: str = "t/1") -> AttemptKey:
    return AttemptKey(
        harness=harness * 64, task=task, task_digest="d" * 64, model="openai/m@t=0", index=index
    )


def valid(key_: AttemptKey, reward: float = 0.5, **changes: object) -> Outcome:
    given: dict[str, object] = {
        "usage": Usage(uncached_input=7, cached_input=3, output=2, calls=1, dollars=0.25),
        "timings": Timings(queued_s=0.5, agent_s=1 / 3),
        "flags": ("touched tests",),
        "trace": "e" * 64,
        **changes,
    }
    return Outcome(key=key_, status=Status.COMPLETED, reward=reward, **given)  # type: ignore[arg-type]


def missing(key_: AttemptKey, detail: str = "provider down") -> Outcome:
    return Outcome(
        key=key_,
        status=Status.MODEL_ERROR,
        reward=None,
        usage=Usage(uncached_input=5, dollars=None),
        detail=detail,
        tries=3,
    )


def harness(body: str = "print(1)\n", **files: str) -> Harness:
    texts = FileTree.of_texts({"harness.toml": MANIFEST, **files})
    return Harness.from_tree(FileTree({**texts, "main.py": File(body.encode(), True)}))


PLAN = encode_plan(RunPlan(seed=3))
EXCHANGE = Exchange(
    request={"messages": [{"role": "user", "content": "hi \ud83d"}], "n": 1.0},
    response={"choices": []},
    status=200,
    seconds=1 / 3,
)


def create(path: Path, name: str = "first", disk: Disk | None = None) -> RunStore:
    return RunStore.create(path, name, PLAN, clock=FixedClock(), min_free_bytes=0, disk=disk)


def reopen(path: Path) -> RunStore:
    return RunStore.open(path, clock=FixedClock())


def founding(island: str = "a") -> list[Event]:
    return [
        proposed(f"{island}.0", island),
        IslandFounded(island=island, mutator="m", root=f"{island}.0", members=(f"{island}.0",)),
        judged(f"{island}.0", island),
    ]
