"""Whole runs through the command line: real Ray, real sandbox, real gateway, a scripted model."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from words import (
    attempts_in,
    called,
    interrupt,
    lineage_of,
    milo,
    serving,
    started,
    wait_for_attempts,
    words_for,
    write_suite,
)

from milo.core.attempt import AttemptKey
from milo.store import RunReader
from milo.testing.scripted_model import ScriptedServer

pytestmark = pytest.mark.timeout(600)
KILLS = 3
SLOTS = 4
"""As `words_for` asks for."""


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_suite(tmp_path_factory.mktemp("suite"))


@pytest.fixture(scope="module")
def recorded(server: ScriptedServer, suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of three rounds."""
    folder = tmp_path_factory.mktemp("recorded")
    done = milo(words_for(server, suite, "one", "budget.rounds=3", "seed=5"), folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "one"


def test_a_run_ends_with_a_tested_winner_and_a_report(recorded: Path) -> None:
    done = milo(["report", str(recorded)], recorded.parent)
    assert done.returncode == 0
    assert "winner" in done.stdout.lower()
    with RunReader(recorded) as reader:
        population = reader.population()
    assert population.ended is not None
    assert population.ended.searched
    assert population.winner is not None
    assert population.lineage[population.winner.candidate].evaluation("test")
    assert {state.round for state in population.topology.islands.values()} == {3}


def test_every_attempt_has_its_trace_with_the_model_exchange(recorded: Path) -> None:
    with RunReader(recorded) as reader:
        outcomes = list(reader.attempts.iter())
        assert all(outcome.is_valid for outcome in outcomes)
        assert all(reader.traces.get(outcome.trace).exchanges for outcome in outcomes)
        assert all(outcome.usage.tokens > 0 for outcome in outcomes)


def test_a_finished_run_says_so_and_does_nothing(recorded: Path) -> None:
    before = attempts_in(recorded)
    done = milo(["resume", str(recorded)], recorded.parent)
    assert done.returncode == 0
    assert "finished" in done.stdout
    assert attempts_in(recorded) == before


def test_an_existing_run_directory_is_refused(
    recorded: Path, server: ScriptedServer, suite: Path
) -> None:
    done = milo(words_for(server, suite, "one", "budget.rounds=1"), recorded.parent)
    assert done.returncode == 2
    assert str(recorded) in done.stderr


def test_a_replay_killed_at_random_under_another_hash_seed_gives_the_identical_lineage(
    recorded: Path, server: ScriptedServer, suite: Path, tmp_path: Path
) -> None:
    words = words_for(server, suite, "again", "budget.rounds=3", "seed=5", f"replay={recorded}")
    calls = server.tally.calls
    total = attempts_in(recorded)
    rng = random.Random(3)
    run = tmp_path / "again"
    for kill in range(KILLS):
        command = words if not run.exists() else ["resume", "again"]
        with started(command, tmp_path, PYTHONHASHSEED=str(kill + 1)) as process:
            target = attempts_in(run) + rng.randrange(3, max(4, total // KILLS))
            wait_for_attempts(process, run, target)
    done = milo(["resume", "again"], tmp_path, PYTHONHASHSEED="77")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lineage_of(run) == lineage_of(recorded)
    assert measured_in(run) == measured_in(recorded)
    assert server.tally.calls == calls, "a replay may not call the model"


def test_ctrl_c_stops_cleanly_and_resume_repeats_no_attempt(
    server: ScriptedServer, suite: Path, tmp_path: Path
) -> None:
    calls = server.tally.calls
    words = words_for(server, suite, "run", "budget.rounds=1")
    with started(words, tmp_path) as process:
        wait_for_attempts(process, tmp_path / "run", 8)
        assert interrupt(process) == 130
    said = (tmp_path / "out.txt").read_text()
    assert "milo resume" in said
    done = milo(["resume", "run"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    checks = 2  # each session asks once whether the model answers
    assert server.tally.calls - calls == calls_recorded_in(tmp_path / "run") + checks


@pytest.mark.parametrize("victim", ["IslandActor", "Host"])
def test_a_killed_actor_costs_its_work_in_flight_and_nothing_else(
    victim: str, server: ScriptedServer, suite: Path, tmp_path: Path
) -> None:
    calls, run = server.tally.calls, tmp_path / "run"
    words = words_for(server, suite, "run", "budget.rounds=1")
    with started(words, tmp_path) as process:
        wait_for_attempts(process, run, 6)
        kill_actor(process.pid, victim)
        assert process.wait(180) == 0, (tmp_path / "out.txt").read_text()
    with RunReader(run) as reader:
        assert reader.population().ended is not None
        most = max(outcome.usage.calls for outcome in reader.attempts.iter())
    hosts, slots = (2, SLOTS) if victim == "Host" else (1, 0)
    repeated = server.tally.calls - calls - hosts - calls_recorded_in(run)
    assert 0 <= repeated <= slots * most, "only what was in flight on a dead host is made again"


def calls_recorded_in(run: Path) -> int:
    """The model calls of all attempts on record."""
    with RunReader(run) as reader:
        return sum(outcome.usage.calls for outcome in reader.attempts.iter())


def measured_in(run: Path) -> dict[AttemptKey, tuple[object, ...]]:
    """What every attempt on record measured."""
    with RunReader(run) as reader:
        return {
            o.key: (o.status, o.reward, o.usage.tokens, o.usage.calls, o.latency_s)
            for o in reader.attempts.iter()
        }


def kill_actor(driver: int, name: str) -> None:
    """SIGKILL the first Ray worker that runs such an actor."""
    found = called(driver, name)
    assert found, f"no {name} among the driver's processes"
    found[0].kill()
