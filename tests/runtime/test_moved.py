"""A run goes on from its directory alone: on another machine, under other paths."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from words import (
    attempts_in,
    milo,
    serving,
    started,
    wait_for_attempts,
    words_for,
    write_suite,
)

from milo.core.attempt import AttemptKey
from milo.store import RunReader

pytestmark = pytest.mark.timeout(900)
SEEDS = Path(__file__).parents[2] / "milo" / "seeds"


def traces(run: Path) -> dict[AttemptKey, str]:
    """Each attempt on record, with the trace that only its own execution left."""
    with RunReader(run) as reader:
        return {outcome.key: outcome.trace for outcome in reader.attempts.iter()}


def test_a_killed_run_goes_on_elsewhere_though_its_seeds_and_its_old_place_are_gone(
    tmp_path: Path,
) -> None:
    here, there = tmp_path / "here", tmp_path / "there" / "deeper"
    here.mkdir()
    there.mkdir(parents=True)
    suite = write_suite(here / "suite", 18)
    for name in ("bare", "plan_act"):
        shutil.copytree(SEEDS / name, here / name)
    with serving() as server:
        seeds = f"seeds={here / 'bare'},{here / 'plan_act'}"
        words = words_for(server, suite, "run", "budget.rounds=1", seeds)
        with started(words, here) as process:
            wait_for_attempts(process, here / "run", 8)
            process.kill()
        before = traces(here / "run")
        (here / "run").rename(there / "moved")
        suite.rename(there / "tasks")
        shutil.rmtree(here)

        lost = milo(["resume", "moved"], there)
        assert lost.returncode == 2 and str(suite) in lost.stderr
        assert attempts_in(there / "moved") == len(before)

        allowed = ["--allow-changes", f"suite.path={there / 'tasks'}"]
        done = milo(["resume", "moved", *allowed], there, 600)
    assert done.returncode == 0, done.stdout + done.stderr
    with RunReader(there / "moved") as reader:
        population = reader.population()
    assert population.ended is not None and population.ended.searched
    assert before.items() <= traces(there / "moved").items(), "nothing is made again"
