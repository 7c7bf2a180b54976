"""How large a run the views carry: `status`, the film, and the page in a real Chromium.

    python tests/benchmarks/bench_views.py [--candidates 10000] [--keep DIR]

Prints one line a measurement. Bars on a quiet machine of two cores: `status` in under a second,
the page's first paint in under two, scrubbing at 30 frames a second or more.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from milo.core.plan import RunPlan
from milo.store import RunReader, RunStore, encode_plan
from milo.store.attempt_rows import to_parquet
from milo.store.attempts import PART_ROWS
from milo.testing.synthetic_run import SyntheticRun
from milo.views.film import film_of
from milo.views.page_file import write_page
from milo.views.plain import PlainView
from milo.views.points import tracker_points
from milo.views.progress_file import NotedView, quick_status

SCRUB = """async steps => {
  const times = [];
  let last = performance.now();
  for (let i = 0; i < steps; i += 1) {
    milo.seek(Math.floor((milo.reel.length * ((i * 37) % steps)) / steps));
    await new Promise((done) => requestAnimationFrame(done));
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  times.sort((a, b) => a - b);
  return { mean: times.reduce((a, b) => a + b) / steps, median: times[steps >> 1] };
}"""


class Ticking:
    """A clock that moves two seconds at every look."""

    def __init__(self) -> None:
        self.at = 1.7e9

    def now(self) -> float:
        self.at += 2.0
        return self.at


@contextmanager
def timed(label: str) -> Iterator[None]:
    """Print wall and CPU seconds of the block."""
    start, cpu = time.perf_counter(), time.process_time()
    yield
    wall, used = time.perf_counter() - start, time.process_time() - cpu
    print(f"{label:<52}{wall:9.2f} s (cpu {used:.2f})", flush=True)


def build(path: Path, candidates: int) -> None:
    """Write a synthetic run: the journal through the store, the attempts as finished parts."""
    run = SyntheticRun(candidates=candidates, rng=np.random.default_rng(1))
    part = 0
    store = RunStore.create(path, path.name, encode_plan(RunPlan()), clock=Ticking())
    with store:
        epochs: dict[str, int] = {}
        for shard, events in run.groups():
            if shard not in epochs:
                epochs[shard] = store.claim(shard)
            store.append(shard, epochs[shard], events)
            while len(run.outcomes) >= PART_ROWS:
                part += 1
                _write_part(path, part, run)
    if run.outcomes:
        _write_part(path, part + 1, run)


def _write_part(path: Path, part: int, run: SyntheticRun) -> None:
    rows, run.outcomes = run.outcomes[:PART_ROWS], run.outcomes[PART_ROWS:]
    (path / "attempts" / f"part-{part:05d}.parquet").write_bytes(to_parquet(rows))


def bench_records(path: Path) -> None:
    """What the records cost to read: by a fold, by the note, and as a film."""
    with RunReader(path) as reader, timed("status by folding the journal"):
        quick_status(reader, 2e9)
    view = NotedView(PlainView(io.StringIO()), path, lambda: 1.7e9)
    with RunReader(path) as reader:
        view.update(list(reader.records()))
    with RunReader(path) as reader, timed("status by the note in step"):
        quick_status(reader, 2e9)
    with timed("milo status, a process of its own"):
        command = [sys.executable, "-m", "milo.app.cli", "status", str(path)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with RunReader(path) as reader, timed("the film"):
        film_of(reader.records())
    with RunReader(path) as reader, timed("the points of a tracker"):
        sum(1 for _ in tracker_points(reader.records()))


def bench_page(path: Path, page: Path) -> None:
    """The written page in Chromium."""
    with (
        RunReader(path) as reader,
        page.open("w", encoding="utf-8") as out,
        timed("the page as a file"),
    ):
        write_page(reader, out, now=0.0)
    print(f"{'  its size':<52}{page.stat().st_size / 1e6:9.1f} MB")
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no chromium here: the page is not measured")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready]", timeout=120_000)
        paint = tab.evaluate("performance.getEntriesByType('paint')[0].startTime")
        ready = float(tab.evaluate("document.documentElement.dataset.ready"))
        print(f"{'first paint':<52}{paint / 1000:9.2f} s")
        print(f"{'the run drawn':<52}{ready / 1000:9.2f} s")
        for zoom in ("default", "fit"):
            if zoom == "fit":
                tab.evaluate("milo.lanes.fit()")
            found = tab.evaluate(SCRUB, 150)
            rate = 1000 / found["mean"]
            words = f"scrubbing at random, {zoom} zoom: median {found['median']:.0f} ms"
            print(f"{words:<52}{rate:9.1f} frames/s")
        browser.close()


def main() -> None:
    """Build, measure, remove."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, help="build here, or measure what is here already")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = args.keep or Path(scratch) / "run"
        if not (path / "run.json").exists():
            with timed(f"building {args.candidates} candidates"):
                build(path, args.candidates)
        bench_records(path)
        bench_page(path, Path(scratch) / "page.html")


if __name__ == "__main__":
    main()
