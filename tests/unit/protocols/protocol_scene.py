"""Hand-made runs for leaderboards: outcomes with given rewards, no run directory."""

from __future__ import annotations

from collections.abc import Sequence

from milo.core.attempt import AttemptKey, Outcome, Status, Timings, Usage
from milo.protocols.entries import Entry, Scored, SearchCost


def outcome(
    harness: str, task: str, reward: float | None, index: int = 0, **changes: object
) -> Outcome:
    missing = reward is None
    settings: dict[str, object] = {
        "key": AttemptKey(
            harness=harness, task=task, task_digest=f"d{task}", model="m", index=index
        ),
        "status": Status.MODEL_ERROR if missing else Status.COMPLETED,
        "reward": reward,
        "resolved": reward == 1.0,
        "usage": Usage(uncached_input=100, output=20, calls=1, dollars=0.01),
        "timings": Timings(agent_s=2.0),
    }
    return Outcome(**{**settings, **changes})  # type: ignore[arg-type]


def scored(name: str, rewards: Sequence[Sequence[float | None]], **changes: object) -> Scored:
    """A harness with one row of rewards (its attempts) for each of the tasks t0, t1, …"""
    return Scored(
        candidate=f"{name}.1",
        name=name,
        harness=f"tree of {name}",
        outcomes={
            (f"t{i}", f"dt{i}"): tuple(
                outcome(f"tree of {name}", f"t{i}", r, j, **changes) for j, r in enumerate(row)
            )
            for i, row in enumerate(rewards)
        },
    )


def entry(method: str, winner: Scored, seeds: Sequence[Scored] = (), **changes: object) -> Entry:
    settings: dict[str, object] = {
        "run": f"runs/{method}",
        "method": method,
        "seed": 1,
        "suite": "s",
        "model": "m",
        "split": "test",
        "winner": winner,
        "seeds": tuple(seeds),
        "cost": SearchCost(attempts=50, usage=Usage(uncached_input=5000), hours=0.5),
        "ended": "spent",
        "tasks": tuple(task for task, _ in winner.outcomes),
    }
    return Entry(**{**settings, **changes})  # type: ignore[arg-type]
