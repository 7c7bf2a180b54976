"""What `scripts/bench scale` writes and measures at full size, small: that it is right."""

from __future__ import annotations

import subprocess
from pathlib import Path

from scale_run import ScaleRun, scale_plan

from milo.store import RunReader
from milo.store.sums import read_sums
from milo.views.progress_file import quick_status
from milo.views.spending import split_of_tasks, tally
from milo.views.status import status_of

CANDIDATES = 24


def grown(path: Path, candidates: int) -> ScaleRun:
    """The run at so many candidates, closed again."""
    run = ScaleRun(scale_plan(path, tasks=4, k=2), path)
    for _ in run.grow(candidates):
        pass
    run.close()
    return run


def test_a_large_runs_records_fold_count_and_restore_alike_whoever_reads_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run"
    grown(path, CANDIDATES // 2)
    run = grown(path, CANDIDATES)  # its islands are restored from their shards
    with RunReader(path) as reader:
        population = reader.population()
        rows = tally(reader.attempts.iter(), split_of_tasks(population))
        sums = reader.attempt_sums()
        told = quick_status(reader, 2e9)
        by_rows = status_of(reader.records(), rows, run=str(path), alive=False, now=2e9)
        harnesses = reader.harnesses.candidates()
    assert len(population.lineage) == run.made == len(harnesses) == CANDIDATES
    for name, island in run.islands.items():
        assert island.state == population.topology[name]
    assert sums == read_sums(path / "attempts")
    assert (sums.made, sums.valid) == (rows.total.attempted, rows.total.valid)
    assert told.islands == by_rows.islands and told.coverage == by_rows.coverage
    validated = sum(bool(n.evaluation("validation")) for n in population.lineage)
    assert sums.made == CANDIDATES * 4 * 2 + validated * 20 * 2


def test_git_shows_a_large_runs_harnesses(tmp_path: Path) -> None:
    path = tmp_path / "run"
    grown(path, 9)
    git = ["git", "-C", str(path / "harnesses.git")]
    shown = subprocess.run(
        [*git, "log", "--all", "--format=%s"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert len(shown) == 9
    assert sum(line.endswith("an edit") for line in shown) == 6
