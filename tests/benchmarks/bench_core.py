"""Speed of the pure core, and the noise bar in full size.

    python tests/benchmarks/bench_core.py            # outcomes a second, hypervolume gain
    python tests/benchmarks/bench_core.py noise      # false admissions and power, 1,000 children

Bars: at least 20,000 outcomes a second through ask and tell; hypervolume gain on a front of 100 in
3 objectives under 1 ms; at most 6.5 % of copies and at least 80 % of children 20 points better
admitted (k = 3, 40 tasks, alpha 0.05). Exits with 1 where a bar is missed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from milo.core.events import Change
from milo.core.fitness import TaskScore
from milo.core.hypervolume import hypervolume_gain
from milo.core.plan import StrategyPlan
from milo.search.island import (
    Closed,
    Island,
    IslandSetup,
    NeedChild,
    NeedConsultation,
    NeedRound,
    NeedScores,
    SeedRef,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "search"))

from noise_model import admission_rate

K = 3
SEARCH = tuple(f"s{i}" for i in range(40))
VALIDATION = tuple(f"v{i}" for i in range(40))
MIN_OUTCOMES = 20_000
MAX_GAIN_MS = 1.0


def evaluation(rng: np.random.Generator, skill: float, tasks: tuple[str, ...]) -> dict:
    wins = (rng.random((len(tasks), K)) < skill).sum(axis=1).tolist()
    tokens = (1000 * np.exp(rng.normal(0, 0.3, len(tasks)))).tolist()
    seconds = (3 * np.exp(rng.normal(0, 0.2, len(tasks)))).tolist()
    return {
        task: TaskScore(n=K, reward=w / K, resolved=w, tokens=t, latency_s=s)
        for task, w, t, s in zip(tasks, wins, tokens, seconds, strict=True)
    }


def outcomes_per_second(rounds: int = 400) -> float:
    """Outcomes told through `scored`, over all time spent in asks and tells of a whole search."""
    seeds = tuple(SeedRef(candidate=f"i{i}.0", harness=f"seed {i}") for i in (1, 2, 3))
    setup = IslandSetup(
        island="i1",
        strategy=StrategyPlan(),
        k=K,
        validation=VALIDATION,
        seeds=seeds,
        run_seed=1,
        rounds=rounds,
    )
    rng = np.random.default_rng(0)
    island, _ = Island.found(setup, "a", seeds[0], SEARCH)
    skills: dict[str, float] = {}
    outcomes, spent = 0, 0.0
    while True:
        start = time.perf_counter()
        need = island.ask()
        spent += time.perf_counter() - start
        if isinstance(need, Closed):
            return outcomes / spent
        scores = {}
        if isinstance(need, NeedScores):
            # Slowly better children, so that the admitted set grows as in a long run.
            skill = skills.setdefault(need.candidate, min(0.95, 0.2 + rng.random() * 0.8))
            scores = evaluation(rng, skill, need.tasks)
            outcomes += len(need.tasks) * K
        start = time.perf_counter()
        match need:
            case NeedScores():
                island.scored(need.candidate, need.split, scores)
            case NeedChild():
                island.proposed(f"tree {need.candidate}", Change(title="edit"), 10)
            case NeedConsultation():
                island.consulted()
            case NeedRound():
                island.begin_round()
        spent += time.perf_counter() - start


def gain_ms(size: int = 100, repeats: int = 200) -> float:
    """Median milliseconds of one hypervolume gain on a mutually nondominated front."""
    rng = np.random.default_rng(0)
    front = rng.random((size, 3))
    front = 1.0 - 0.8 * front / np.linalg.norm(front, axis=1, keepdims=True)
    times = []
    for _ in range(repeats):
        child = 1.0 - 0.85 * (v := rng.random(3)) / np.linalg.norm(v)
        start = time.perf_counter()
        hypervolume_gain(front, child, (1.0, 1.0, 1.0))
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e3


def speed() -> bool:
    rate, gain = outcomes_per_second(), gain_ms()
    print(f"ask/tell: {rate:,.0f} outcomes a second (bar {MIN_OUTCOMES:,})")
    print(f"hypervolume gain, front of 100 in 3 objectives: {gain:.3f} ms (bar {MAX_GAIN_MS} ms)")
    return rate >= MIN_OUTCOMES and gain < MAX_GAIN_MS


def noise(children: int = 1000) -> bool:
    noisy = admission_rate(children)
    equal = admission_rate(children, equal_costs=True)
    power = admission_rate(children, lift=0.2)
    saving = admission_rate(children, cheaper=0.5)
    print("40 tasks, k = 3, alpha 0.05:")
    print(f"  copies admitted {noisy:.1%} (noisy costs), {equal:.1%} (equal costs); bar 6.5 %")
    print(f"  20 points better at equal cost {power:.1%}; bar 80 %")
    print(f"  half the tokens at equal accuracy {saving:.1%}")
    for n_tasks, k in ((16, 1), (24, 1), (24, 2)):
        print(f"{n_tasks} tasks, k = {k}:  alpha: copies, 20 points better, half the tokens")
        for alpha in (0.05, 0.1, 0.2, 0.3):
            rates = [
                admission_rate(children, n_tasks=n_tasks, k=k, alpha=alpha, **change)
                for change in ({}, {"lift": 0.2}, {"cheaper": 0.5})
            ]
            print(f"  {alpha:4.2f}: " + ", ".join(f"{rate:6.1%}" for rate in rates), flush=True)
    return max(noisy, equal) <= 0.065 and power >= 0.8


if __name__ == "__main__":
    sys.exit(0 if (noise() if "noise" in sys.argv[1:] else speed()) else 1)
