"""A replay that is killed with SIGKILL at random, twenty times, against its recording.

Run apart from the tests: ``scripts/bench kills [kills]``; the tests run a sample of it. The bar:
the lineage is identical (candidates, patches, fitness, verdicts, moves of each island in order),
no attempt is lost or repeated, the model is never called, nothing stays alive.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

from words import (
    attempts_in,
    lineage_of,
    milo,
    serving,
    started,
    wait_for_attempts,
    words_for,
    write_suite,
)


def main(kills: int) -> None:
    """Record, replay under kills, compare, print."""
    rng = random.Random(kills)
    with tempfile.TemporaryDirectory() as name, serving() as server:
        folder = Path(name)
        suite = write_suite(folder / "suite")
        first = milo(words_for(server, suite, "one", "budget.rounds=4", "seed=9"), folder)
        assert first.returncode == 0, first.stdout + first.stderr
        calls, total = server.tally.calls, attempts_in(folder / "one")
        words = words_for(server, suite, "again", "budget.rounds=4", "seed=9", "replay=one")
        killed = 0
        for kill in range(kills):
            run = folder / "again"
            command = ["resume", "again"] if run.exists() else words
            with started(command, folder, PYTHONHASHSEED=str(kill + 1)) as process:
                more = rng.randrange(1, max(2, 2 * total // kills))
                wait_for_attempts(process, run, attempts_in(run) + more)
                if process.poll() is not None:
                    print(f"ended by itself before kill {kill + 1}")
                    break
                killed += 1
        last = milo(["resume", "again"], folder)
        assert last.returncode == 0, last.stdout + last.stderr
        same = lineage_of(folder / "again") == lineage_of(folder / "one")
        print(
            f"{killed} kills; {total} attempts recorded, {attempts_in(folder / 'again')} replayed"
        )
        print(f"lineage identical: {same}; model calls in the replay: {server.tally.calls - calls}")
        assert same and attempts_in(folder / "again") == total and server.tally.calls == calls


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
