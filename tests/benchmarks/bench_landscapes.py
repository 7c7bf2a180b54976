"""Strategies and the rules orchestrator on landscapes whose truth is known (SPEC §3.3, §5).

    scripts/bench landscapes diagnosis [instances]   # planted stalls, and islands without one
    scripts/bench landscapes pairs [seeds]           # E against D, with stalls and without
    scripts/bench landscapes ablation [seeds]        # A to E at equal attempts

Bars: at least 95 % of the planted stalls get the right diagnosis, and at least 95 % of the healthy
islands no move, over 200 instances each; E ends better than D in at least 80 % of 50 paired seeds
where stalls are planted, and not significantly different where none are. What is compared is the
exact accuracy of the winner. Exits with 1 where a bar is missed. Seeds start at FIRST_SEED:
nothing was tuned on these.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

from landscape_runs import STRATEGIES, first_answer, healthy_answer, truth_of

from milo.testing.stalls import DIAGNOSES, Kind, draw_world

FIRST_SEED = 30_000
RIGHT, BETTER = 0.95, 0.8
Z = 1.96


def main(words: Sequence[str]) -> int:
    """Run one part, print its table; 1 where a bar is missed."""
    parts = {"diagnosis": (diagnosis, 200), "pairs": (pairs, 50), "ablation": (ablation, 50)}
    part, count = parts[words[0] if words else "diagnosis"]
    return 0 if part(int(words[1]) if len(words) > 1 else count) else 1


def diagnosis(count: int) -> bool:
    """The share of planted stalls diagnosed rightly, and of healthy islands left alone."""
    jobs = [(kind, FIRST_SEED + n) for n in range(count // len(DIAGNOSES)) for kind in DIAGNOSES]
    with ProcessPoolExecutor() as pool:
        answers = list(pool.map(_diagnosed, jobs, chunksize=4))
        moves = list(pool.map(_moved, range(FIRST_SEED, FIRST_SEED + count), chunksize=4))
    right = 0
    for kind in DIAGNOSES:
        said = Counter(answer for (k, _), answer in zip(jobs, answers, strict=True) if k is kind)
        right += said[DIAGNOSES[kind].value]
        print(f"planted {kind}: {dict(said.most_common())}")
    left_alone = moves.count("")
    print(f"right: {right} of {len(jobs)} ({right / len(jobs):.1%})")
    print(f"healthy, no move: {left_alone} of {count} ({left_alone / count:.1%})")
    return right >= RIGHT * len(jobs) and left_alone >= RIGHT * count


def pairs(count: int) -> bool:
    """E against D at equal attempts, the same seeds."""
    stalled = _difference(Kind.MIXED, "e", "d", count)
    healthy = _difference(Kind.HEALTHY, "e", "d", count)
    better = float(np.mean(stalled > 0))
    low, high = _interval(healthy)
    print(f"with stalls: E better than D on {better:.0%} of {count} seeds, {_words(stalled)}")
    print(f"without: {_words(healthy)}")
    return better >= BETTER and low <= 0 <= high


def ablation(count: int) -> bool:
    """Each strategy's winner, and each letter against the one before it."""
    for kind in (Kind.MIXED, Kind.HEALTHY):
        truths = {name: _truths(kind, name, count) for name in STRATEGIES}
        for name, values in truths.items():
            print(f"{kind}, {name.upper()}: {values.mean():.3f}")
        for before, after in pairwise(STRATEGIES):
            difference = truths[after] - truths[before]
            print(f"{kind}, {after.upper()} - {before.upper()}: {_words(difference)}")
    return True


def _diagnosed(job: tuple[Kind, int]) -> str:
    kind, seed = job
    found = first_answer(draw_world(kind, seed), seed)
    return "never stalled" if found is None else found.diagnosis.value


def _moved(seed: int) -> str:
    answer = healthy_answer(draw_world(Kind.HEALTHY, seed), seed)
    return "" if answer is None else " + ".join(move.kind for move in answer.moves)


def _truth(job: tuple[Kind, str, int]) -> float:
    kind, strategy, seed = job
    return truth_of(draw_world(kind, seed), strategy, seed)


def _truths(kind: Kind, strategy: str, count: int) -> np.ndarray:
    jobs = [(kind, strategy, FIRST_SEED + number) for number in range(count)]
    with ProcessPoolExecutor() as pool:
        return np.array(list(pool.map(_truth, jobs, chunksize=2)))


def _difference(kind: Kind, one: str, other: str, count: int) -> np.ndarray:
    return _truths(kind, one, count) - _truths(kind, other, count)


def _interval(difference: np.ndarray) -> tuple[float, float]:
    half = Z * float(difference.std(ddof=1)) / len(difference) ** 0.5
    return float(difference.mean()) - half, float(difference.mean()) + half


def _words(difference: np.ndarray) -> str:
    low, high = _interval(difference)
    return f"mean difference {difference.mean():+.3f}, 95 % interval {low:+.3f} to {high:+.3f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
