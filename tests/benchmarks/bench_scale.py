"""A run of 10,000 candidates and 5,000,000 attempts, written through the real store, then used.

Run apart from the tests: ``scripts/bench scale [--candidates 10000] [--attempts 5000000]
[--keep DIR]``. A `DIR` is gone on with where it was left: writing takes a quarter of an hour.
Bars: it opens in under 10 s, is resumed in under 60 s with every process under 1 GB, ``milo
status`` answers in under a second, also after the driver died, and ``git log`` works.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

import psutil
from scale_run import ScaleRun, scale_plan
from words import MAIN, descendants, environment, serving, started, wait_gone

from milo.store import RunReader
from milo.store.journal import JournalMark

K = 5
LOADER = """
import json, resource, sys, time
from pathlib import Path
begun = time.perf_counter()
from milo.store import RunReader
imported = time.perf_counter()
with RunReader(Path(sys.argv[1])) as reader:
    population = reader.population()
    folded = time.perf_counter()
    table = reader.attempts
    opened = time.perf_counter()
    made = table.count
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"import": imported - begun, "journal": folded - imported,
    "attempts": opened - folded, "candidates": len(population.lineage), "made": made,
    "peak": peak}))
"""


@contextmanager
def timed(label: str) -> Iterator[None]:
    """Print the wall seconds of the block, and the CPU seconds of its children."""
    begun, before = time.perf_counter(), _children_s()
    yield
    wall, cpu = time.perf_counter() - begun, _children_s() - before
    print(f"{label:<56}{wall:9.2f} s (cpu {cpu:.2f})", flush=True)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write(path: Path, candidates: int, attempts: int) -> None:
    """Write the run, or what is missing of it."""
    tasks = max(1, attempts // candidates // K)
    begun, run = time.perf_counter(), ScaleRun(scale_plan(path, tasks=tasks, k=K), path)
    before = run.made
    try:
        for made in run.grow(candidates):
            if made % 500 == 0:
                print(f"  {made} candidates, {time.perf_counter() - begun:.0f} s", flush=True)
    finally:
        run.close()
    each = (time.perf_counter() - begun) / max(1, run.made - before)
    print(f"written: {run.made - before} candidates, {each * 1000:.1f} ms each")


def load(path: Path) -> None:
    """Open everything in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", LOADER, str(path)], check=True, capture_output=True, text=True
    )
    told = json.loads(done.stdout)
    size = sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) / 2**20
    journal = (path / "journal.jsonl").stat().st_size / 2**20
    print(f"{told['candidates']:,} candidates, {told['made']:,} attempts, {size:,.0f} MiB on disk")
    print(f"open the attempts {told['attempts']:29.2f} s")
    print(f"fold the journal ({journal:.0f} MiB) {told['journal']:22.2f} s")
    print(f"resident at most {told['peak']:30.0f} MiB")


def status(path: Path, label: str) -> None:
    """`milo status` in a process of its own, the better of two."""
    for attempt in ("first", "again"):
        with timed(f"milo status, {label}, {attempt}"):
            argv = [sys.executable, "-c", MAIN, "status", str(path)]
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def git_log(path: Path) -> None:
    """git on the store of harnesses."""
    git = ["git", "-C", str(path / "harnesses.git")]
    for words in (["log", "--graph", "--oneline", "--all"], ["log", "--oneline", "-20", "i1"]):
        with timed(f"git {' '.join(words)}"):
            done = subprocess.run([*git, *words], check=True, capture_output=True, text=True)
        print(f"  {len(done.stdout.splitlines())} lines")


def resume(path: Path, folder: Path) -> None:
    """`milo resume` until an island has decided something new; then a kill of the driver."""
    with serving() as server:
        words = ["resume", str(path), "--allow-changes", f"model.base_url={server.base_url}"]
        with RunReader(path) as reader:
            before = sum(1 for _ in reader.records())
        mark = JournalMark().advanced(path / "journal.jsonl", before)
        begun = time.perf_counter()
        with started(words, folder, **environment()) as process:
            peak: dict[str, float] = {}
            while not news(path, mark) and process.poll() is None:
                watch(process.pid, peak)
                assert time.perf_counter() - begun < 600, "nothing new within ten minutes"
                time.sleep(0.2)
            assert process.poll() is None, (folder / "out.txt").read_text()
            print(
                f"milo resume to the first new record of an island"
                f"{time.perf_counter() - begun:9.2f} s"
            )
            watch(process.pid, peak)
            for name, size in sorted(peak.items(), key=lambda pair: -pair[1])[:6]:
                print(f"  {name:<40}{size:9.0f} MiB")
            status(path, "live")
            family = descendants(process.pid)
            process.kill()
            status(path, "driver just killed")
            wait_gone(family)
    status(path, "dead")


def news(path: Path, mark: JournalMark) -> bool:
    """Whether an island has recorded anything since."""
    with RunReader(path) as reader:
        records = reader.records_after(mark)
        return any(record.shard not in ("run", "orchestrator") for record in records or ())


def watch(driver: int, peak: dict[str, float]) -> None:
    """Note the largest resident memory of the driver and its Python workers, in MiB."""
    for process in (psutil.Process(driver), *descendants(driver)):
        try:
            words = process.cmdline()
            name = words[0] if words and words[0].startswith("ray::") else process.name()
            peak[name] = max(peak.get(name, 0.0), process.memory_info().rss / 2**20)
        except psutil.NoSuchProcess:
            continue


def main() -> None:
    """Write the run, then measure."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--candidates", type=int, default=10_000)
    options.add_argument("--attempts", type=int, default=5_000_000)
    options.add_argument("--keep", type=Path, metavar="DIR")
    given = options.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    folder = Path(tempfile.mkdtemp())
    path = (given.keep or folder / "run").resolve()
    try:
        write(path, given.candidates, given.attempts)
        load(path)
        status(path, "as written")
        git_log(path)
        resume(path, folder)
        git_log(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
