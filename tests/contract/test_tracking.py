"""wandb for real: a run whose process is killed with SIGKILL and goes on, read back from the file
that wandb wrote, record by record with wandb's own types."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stand_in_wandb import StandIn, serving

from milo.core.plan import RunPlan
from milo.store import RunReader, RunStore
from milo.store.codec import encode_plan
from milo.testing.landscape import landscape_harness
from milo.testing.synthetic_run import SyntheticRun
from milo.testing.wandb_log import wandb_records
from milo.views.findings import COLUMNS
from milo.views.points import Point, tracker_points
from milo.views.trackers import run_id

pytest.importorskip("wandb")
pytestmark = pytest.mark.timeout(300)

KEY = "C0FFEE" * 7
FOLLOW = """
import os, signal, sys
from pathlib import Path
from milo.app.following import Following
from milo.core.budget import Spend
from milo.core.plan import RunPlan, TrackingPlan
from milo.gateway.price_book import PriceBook
from milo.gateway.prices import FREE
from milo.store import RunReader

path, upto, mode = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
plan = RunPlan(tracking=TrackingPlan(wandb=mode, group="study"))
with RunReader(path) as reader:
    records = list(reader.records())
following = Following(plan, path, PriceBook(prices={"local": FREE}), ())
assert following.fault == "", following.fault
for number, record in enumerate(records[:upto] if upto else records):
    following.spent(Spend(dollars=number / 1000))
    following.records([record])
if upto:
    print("killed", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
assert following.close({"reason": "done", "searched": True}) == ""
"""


class Ticking:
    def __init__(self) -> None:
        self.at = 1_700_000_000.0

    def now(self) -> float:
        self.at += 2.0
        return self.at


def write_run(path: Path) -> Path:
    """A synthetic run whose winner has a harness on record."""
    import numpy as np

    run = SyntheticRun(
        candidates=60, rng=np.random.default_rng(5), islands=2, tasks=4, keep_outcomes=False
    )
    store = RunStore.create(
        path, path.name, encode_plan(RunPlan()), clock=Ticking(), min_free_bytes=0
    )
    with store:
        epochs: dict[str, int] = {}
        for shard, events in run.groups():
            if shard not in epochs:
                epochs[shard] = store.claim(shard)
            store.append(shard, epochs[shard], events)
        assert run.population.winner is not None
        won = run.population.winner.candidate
        store.put_harness(won, landscape_harness({"a": 1}, "won"), (), "the winner")
    return path


def environment(home: Path, **more: str) -> dict[str, str]:
    """wandb's folders below `home`, and a key that must appear nowhere."""
    places = {name: str(home) for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_CONFIG_DIR")}
    return {**os.environ, **places, "WANDB_API_KEY": KEY, **more}


def follow(run: Path, upto: int, home: Path, mode: str = "offline", **more: str) -> int:
    """Follow a run in a process of its own; its exit code."""
    done = subprocess.run(
        [sys.executable, "-c", FOLLOW, str(run), str(upto), mode],
        env=environment(home, **more),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert upto or done.returncode == 0, done.stdout + done.stderr
    return done.returncode


def records_in(directory: Path) -> Iterator[Any]:
    """The records of the one offline run below a directory."""
    (path,) = (directory / "wandb").glob("offline-run-*/run-*.wandb")
    return wandb_records(path)


def of_kind(directory: Path, kind: str) -> list[Any]:
    return [getattr(r, kind) for r in records_in(directory) if r.WhichOneof("record_type") == kind]


def histories(directory: Path) -> dict[int, dict[str, float]]:
    """Step -> values; fails where a step is there twice."""
    found: dict[int, dict[str, float]] = {}
    for history in of_kind(directory, "history"):
        assert history.step.num not in found, f"step {history.step.num} twice"
        found[history.step.num] = {
            (item.key or ".".join(item.nested_key)): json.loads(item.value_json)
            for item in history.item
        }
    return found


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run followed thrice: killed, killed again further on, then to its end."""
    folder = tmp_path_factory.mktemp("tracked")
    run = write_run(folder / "run")
    with RunReader(run) as reader:
        total = len(list(reader.records()))
    for upto in (total // 3, total // 2):
        assert follow(run, upto, folder / "home") == -signal.SIGKILL
    assert follow(run, 0, folder / "home") == 0
    return run


def test_after_two_kills_every_step_is_there_once_with_its_values(followed: Path) -> None:
    with RunReader(followed) as reader:
        points = list(tracker_points(reader.records()))
    found = histories(followed)
    assert sorted(found) == [point.step for point in points]
    for point in points:
        values = found[point.step]
        for name, value in point.values.items():
            assert values[name] == pytest.approx(value), f"{name} at step {point.step}"
        assert values["spent/dollars"] == pytest.approx(point.step / 1000)
    names = set().union(*found.values())
    assert names >= {
        "population/best_validation",
        "population/hypervolume",
        "island/i1/hypervolume",
        "island/i1/stall",
        "island/i1/best_validation",
        "orchestrator/interventions",
        "run/coverage",
        "spent/tokens",
        "spent/dollars",
    }


def test_runs_of_a_multirun_compare_over_attempts_in_one_group(followed: Path) -> None:
    (run,) = of_kind(followed, "run")
    assert (run.run_group, run.display_name, run.job_type) == ("study", "run", "milo")
    axes = {m.glob_name: m.step_metric for m in of_kind(followed, "metric") if m.glob_name}
    assert axes["population/*"] == axes["island/*"] == "spent/attempts"


def test_the_summary_has_the_candidates_as_a_table(followed: Path) -> None:
    with RunReader(followed) as reader:
        nodes = list(reader.population().lineage)
    (folder,) = (followed / "wandb").glob("offline-run-*")
    (path,) = folder.rglob("*.table.json")
    table = json.loads(path.read_text())
    assert table["columns"] == list(COLUMNS)
    assert [row[0] for row in table["data"]] == [node.candidate for node in nodes]
    verdicts = {row[0]: row[COLUMNS.index("verdict")] for row in table["data"]}
    assert verdicts == {n.candidate: str(n.verdict) if n.verdict else "pending" for n in nodes}


def test_the_best_harness_is_an_artifact_with_its_lineage(followed: Path) -> None:
    with RunReader(followed) as reader:
        population = reader.population()
        assert population.winner is not None
        won = population.winner.candidate
        tree = reader.harnesses.tree(won)
        wanted = population.lineage.path_from_seed(won)
    artifacts = [
        r.request.log_artifact.artifact if r.WhichOneof("record_type") == "request" else r.artifact
        for r in records_in(followed)
        if r.WhichOneof("record_type") in ("artifact", "request")
    ]
    (harness,) = [a for a in artifacts if a.type == "harness"]
    told = json.loads(harness.metadata)
    assert told["candidate"] == won and told["is_winner"] is True
    assert [edge["candidate"] for edge in told["path"]] == list(wanted)
    assert "best" in harness.aliases
    held = {entry.path: Path(entry.local_path) for entry in harness.manifest.contents}
    assert set(held) == set(tree)
    for path, place in held.items():
        assert place.is_relative_to(followed), "nothing lies outside of the run directory"
        assert place.read_bytes() == tree[path].data


def test_no_key_is_written(followed: Path) -> None:
    written = b"".join(p.read_bytes() for p in followed.rglob("*") if p.is_file())
    assert KEY.encode() not in written


# --- with wandb's own reader, against a stand-in for its server -----------------------------------


@pytest.fixture
def server() -> Iterator[StandIn]:
    with serving() as standing:
        yield standing


def held_at(standing: StandIn, run: Path) -> Any:
    """What the server holds of a run."""
    with RunReader(run) as reader:
        return standing.run(run_id(run.name, reader.created))


def steps_at(standing: StandIn, run: Path) -> list[int]:
    return [row["_step"] for row in held_at(standing, run).history]


def points_of(run: Path) -> list[Point]:
    with RunReader(run) as reader:
        return list(tracker_points(reader.records()))


def test_wandbs_own_reader_finds_every_step_once_in_the_offline_directory(
    followed: Path, server: StandIn, tmp_path: Path
) -> None:
    (folder,) = (followed / "wandb").glob("offline-run-*")
    done = subprocess.run(
        [sys.executable, "-m", "wandb", "sync", "--project", "milo", str(folder)],
        env=environment(tmp_path, WANDB_BASE_URL=server.url),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    points = points_of(followed)
    assert steps_at(server, followed) == [point.step for point in points]
    for row, point in zip(held_at(server, followed).history, points, strict=True):
        assert {name: row[name] for name in point.values} == pytest.approx(dict(point.values))


def test_an_online_run_that_was_killed_goes_on_without_a_gap_or_a_repetition(
    server: StandIn, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run")
    points = points_of(run)
    total = points[-1].step
    more = {"WANDB_BASE_URL": server.url}
    assert follow(run, total // 2, tmp_path, "online", **more) == -signal.SIGKILL
    wait_until_still(server, run)
    held = steps_at(server, run)
    assert held == [point.step for point in points][: len(held)]
    assert follow(run, 0, tmp_path, "online", **more) == 0
    assert steps_at(server, run) == [point.step for point in points]
    assert held_at(server, run).facts["groupName"] == "study"


def wait_until_still(standing: StandIn, run: Path) -> None:
    """Until wandb's own process, which outlives ours for a moment, has sent what it had."""
    deadline, last, since = time.monotonic() + 60, -1, time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - since < 4.0:
        now = len(steps_at(standing, run))
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.2)
