"""A bare pool of processes that propose and evaluate in turn: what schedulers are compared with.

``python bare_pool.py EVALUATIONS WORKERS SECONDS`` prints when each evaluation ran, as JSON. A
process of its own, which imports nothing large, so that its workers may be forked.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time


def think_and_work(seconds: float) -> tuple[float, float]:
    """Propose, then evaluate; when the evaluation ran."""
    time.sleep(seconds)
    begun = time.time()
    time.sleep(seconds)
    return begun, time.time()


def main(evaluations: int, workers: int, seconds: float) -> None:
    """A fresh process for each, as many at once as there are workers."""
    with multiprocessing.get_context("fork").Pool(workers, maxtasksperchild=1) as pool:
        print(json.dumps(pool.map(think_and_work, [seconds] * evaluations, chunksize=1)))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
