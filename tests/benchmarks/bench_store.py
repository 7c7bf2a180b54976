"""How large a run the store carries: attempts, candidates, harness commits, on this machine.

    python tests/benchmarks/bench_store.py [--attempts 200000] [--candidates 10000] [--puts 100]

Prints one line a measurement. Bars: 5,000,000 attempts open in under 10 s and 1 GB resident; the
journal of 10,000 candidates is folded in seconds; a harness is put in under 50 ms.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from milo.core.attempt import AttemptKey, Outcome, Status, Timings, Usage
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Change,
    Event,
    IslandFounded,
    RoundEnded,
    Verdict,
)
from milo.core.evidence import Exchange, Trace
from milo.core.fitness import TaskScore
from milo.core.harness import Harness
from milo.core.plan import RunPlan
from milo.core.tree import File, FileTree
from milo.store import RunReader, RunStore, encode_plan
from milo.store.attempt_rows import to_parquet
from milo.store.attempts import PART_ROWS

TASKS, K = 24, 3
PER_HARNESS = TASKS * K


class WallClock:
    """Real time."""

    def now(self) -> float:
        return time.time()


@contextmanager
def timed(label: str, per: int = 1, unit: str = "s") -> Iterator[None]:
    """Print wall and CPU time of the block, divided by `per`, in seconds or milliseconds."""
    start, cpu_start = time.perf_counter(), time.process_time()
    yield
    scale = (1000 if unit == "ms" else 1) / per
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    print(f"{label:<58}{wall * scale:10.3f} {unit:<2} (cpu {cpu * scale:.3f})", flush=True)


def an_outcome(number: int) -> Outcome:
    """The `number`-th attempt of a large run: 72 attempts a harness, one in 50 missing."""
    harness, inside = divmod(number, PER_HARNESS)
    is_missing = number % 50 == 0
    return Outcome(
        key=AttemptKey(
            harness=f"{harness:064x}",
            task=f"family/task-{inside // K:03d}",
            task_digest=f"{inside // K:064x}",
            model="local/qwen2.5-coder-0.5b@temperature=0.7",
            index=inside % K,
        ),
        status=Status.MODEL_ERROR if is_missing else Status.COMPLETED,
        reward=None if is_missing else float(number % 2),
        resolved=not is_missing and number % 2 == 1,
        usage=Usage(uncached_input=900 + number % 97, output=number % 211, calls=2, dollars=None),
        timings=Timings(queued_s=0.1, setup_s=0.01, agent_s=1 + number % 13 / 7, verifier_s=0.2),
        trace=f"{number * 2654435761 % 2**256:064x}",
        detail="exit 1" if number % 3 == 0 else "",
    )


def bench_appends(store: RunStore) -> None:
    """Outcomes one by one and in batches, the way a run records them."""
    with timed("attempts: append one, durable", 100, "ms"):
        for number in range(100):
            store.attempts.append([an_outcome(10**9 + number)])
    with timed("attempts: append in batches of 100, each", 5000, "ms"):
        for start in range(0, 5000, 100):
            store.attempts.append([an_outcome(2 * 10**9 + start + i) for i in range(100)])
    trace = Exchange(request={"p": "x" * 2000}, response={"a": "y" * 500}, status=200, seconds=1.0)
    with timed("traces: put", 200, "ms"):
        for number in range(200):
            store.put_trace(Trace(stdout=str(number), exchanges=(trace, trace)))


def write_parts(folder: Path, attempts: int) -> None:
    """Fill the table's parts directly: what as many appends would have left."""
    for number, start in enumerate(range(0, attempts, PART_ROWS), start=1):
        rows = range(start, min(start + PART_ROWS, attempts))
        part = folder / f"part-{number:05d}.parquet"
        part.write_bytes(to_parquet([an_outcome(row) for row in rows]))


READER = """
import sys, time, resource
from pathlib import Path
from milo.store import RunReader
def resident():
    status = Path("/proc/self/status").read_text()
    pick = lambda name: int(status.split(name)[1].split()[0]) / 1024
    return pick("VmRSS:"), pick("VmHWM:")
sys.path.insert(0, sys.argv[2])
from bench_store import an_outcome, PER_HARNESS
reader = RunReader(Path(sys.argv[1]))
count_before = resident()[0]
start = time.perf_counter()
table = reader.attempts
opened = time.perf_counter() - start
now, peak = resident()
print(f"attempts: open {table.count:,} rows: {opened:.2f} s, resident {now:,.0f} MiB "
      f"(peak {peak:,.0f}, before {count_before:,.0f}), spent {table.spent().tokens:,} tokens")
def clock(label, call):
    start = time.perf_counter(); result = call(); took = time.perf_counter() - start
    print(f"{label:<58}{took * 1000:10.3f} ms")
    return result
last = table.count // PER_HARNESS - 1
keys = [an_outcome(last * PER_HARNESS + i).key for i in range(PER_HARNESS)]
found = clock("attempts: look up one harness's 72 keys, first time", lambda: table.newest(keys))
assert len(found) == len(keys)
clock("attempts: look up one harness's 72 keys, again", lambda: table.newest(keys))
spread = [an_outcome(i * (table.count // 1000)).key for i in range(1000)]
clock("attempts: look up 1,000 keys spread over everything", lambda: table.newest(spread))
clock("attempts: all of one harness", lambda: table.of_harness(keys[0].harness))
"""


def bench_table(run: Path, attempts: int) -> None:
    """Open a large table in a fresh process and look things up."""
    with timed(f"attempts: write {attempts:,} rows as parts"):
        write_parts(run / "attempts", attempts)
    size = sum(path.stat().st_size for path in (run / "attempts").iterdir())
    print(f"attempts: {size / attempts:.0f} bytes a row on disk")
    here = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", READER, str(run), here], check=True)


def events_of(number: int) -> list[Event]:
    """All events of one candidate of a chain."""
    candidate = f"a.{number}"
    scores = {
        f"family/task-{i:03d}": TaskScore(
            n=K, reward=i / TASKS, resolved=1, tokens=1234.5, latency_s=2.3456789
        )
        for i in range(TASKS)
    }
    made = CandidateProposed(
        island="a",
        candidate=candidate,
        round=number,
        parents=(f"a.{number - 1}",) if number else (),
        harness=f"{number:064x}",
        mutator="operators",
        change=Change(title="ask twice", diagnosis="the answers differ " * 8),
    )
    founded = IslandFounded(island="a", mutator="operators", root=candidate, members=(candidate,))
    verdict = Verdict.SEED if not number else Verdict.REJECTED
    return [
        made,
        *([] if number else [founded]),
        CandidateScored(island="a", candidate=candidate, split="search", scores=scores),
        CandidateScored(island="a", candidate=candidate, split="validation", scores=scores),
        CandidateJudged(
            island="a", candidate=candidate, round=number, verdict=verdict, reason="no gain"
        ),
        RoundEnded(island="a", round=number, stall=0, best_validation=0.5),
    ]


def bench_journal(store: RunStore, candidates: int) -> None:
    """Append a long chain, then read and fold it as `status` does."""
    epoch = store.claim("a")
    with timed("journal: append one candidate's events, durable", candidates, "ms"):
        for number in range(candidates):
            store.append("a", epoch, events_of(number))
    size = (store.path / "journal.jsonl").stat().st_size
    print(f"journal: {candidates:,} candidates, {size / 2**20:.0f} MiB")
    with RunReader(store.path) as reader:
        with timed("journal: read and decode all"):
            sum(1 for _ in reader.records())
        with timed("journal: read, decode and fold into a population"):
            reader.population()


def bench_harnesses(store: RunStore, puts: int) -> None:
    """Commit a chain of harnesses that differ in one file, and read them back."""
    manifest = File(b'name = "x"\nentry = "python3 main.py"\n')
    shared = {f"lib/part{i}.py": File(b"pass\n" * 50) for i in range(10)}
    with timed("harnesses: put", puts, "ms"):
        for number in range(puts):
            main = File(b"print(%d)\n" % number + b"# a line\n" * 100)
            tree = FileTree({"harness.toml": manifest, "main.py": main, **shared})
            parents = (f"a.{number - 1}",) if number else ()
            store.put_harness(f"a.{number}", Harness.from_tree(tree), parents, "edit")
    with timed("harnesses: get", puts, "ms"):
        for number in range(puts):
            store.get_harness(f"a.{number}")


def main() -> None:
    """Run every measurement in a scratch directory."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--attempts", type=int, default=200_000)
    options.add_argument("--candidates", type=int, default=10_000)
    options.add_argument("--puts", type=int, default=100)
    given = options.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        with RunStore.create(run, "bench", encode_plan(RunPlan()), clock=WallClock()) as store:
            bench_harnesses(store, given.puts)
            bench_journal(store, given.candidates)
            bench_appends(store)
        bench_table(run, given.attempts)


if __name__ == "__main__":
    main()
