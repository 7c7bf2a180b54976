from __future__ import annotations

import importlib.util
import struct
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from milo.core.errors import ConfigError
from milo.core.plan import TrackingPlan
from milo.core.tree import FileTree
from milo.testing.wandb_log import wandb_records
from milo.views.findings import COLUMNS, Findings
from milo.views.points import tracker_points
from milo.views.trackers import (
    EveryTracker,
    Follower,
    NullTracker,
    choose_tracker,
    public_config,
    run_id,
)

needs_wandb = pytest.mark.skipif(
    importlib.util.find_spec("wandb") is None, reason="wandb is not installed"
)


class ListTracker:
    """Keeps points as wandb would; `last_step` is what an earlier process left."""

    def __init__(self, last_step: int = -1) -> None:
        self.points: list[tuple[int, dict[str, float]]] = []
        self._last = last_step
        self.fault = ""

    @property
    def last_step(self) -> int:
        return self._last

    def log(self, step: int, values: Mapping[str, float]) -> None:
        assert step > self._last
        self._last = step
        self.points.append((step, dict(values)))

    def finish(self, summary: Mapping[str, object]) -> None:
        raise AssertionError("nobody finishes here")


def test_steps_are_the_journals_own_and_rise(make_story: Any) -> None:
    story = make_story("finished")
    steps = [point.step for point in tracker_points(story.records)]
    assert steps == sorted(set(steps))
    assert set(steps) <= {record.seq for record in story.records}


def test_points_tell_islands_population_and_spending(make_story: Any) -> None:
    points = list(tracker_points(make_story("finished").records))
    latest: dict[str, float] = {}
    for point in points:
        latest.update(point.values)
    assert latest["island/i1/accuracy"] == pytest.approx(0.6)
    assert latest["island/i2/best_validation"] == pytest.approx(0.8)
    assert latest["island/i2/gain"] == latest["island/i2/gain_total"] == pytest.approx(0.0123)
    assert latest["island/i4/accuracy"] == pytest.approx(1 / 6)
    assert latest["island/i4/members"] == 1
    assert latest["population/best_validation"] == pytest.approx(0.8)
    assert latest["orchestrator/interventions"] == 4
    assert latest["spent/tokens"] > latest["spent/attempts"] > 0
    stalls = [p.values["island/i2/stall"] for p in points if "island/i2/stall" in p.values]
    assert max(stalls) == 3


def test_spending_never_falls_and_no_task_is_counted_twice(make_story: Any) -> None:
    story = make_story("seeds")
    once = [point.values["spent/attempts"] for point in tracker_points(story.records)]
    assert once == sorted(once)
    story.score("i1.0", "search", 0.2)
    story.consult("i1", 1, "healthy")
    assert list(tracker_points(story.records))[-1].values["spent/attempts"] == once[-1]


@pytest.mark.parametrize("cut", [0, 1, 7, 20, 33])
def test_a_killed_and_resumed_run_lacks_no_step_and_repeats_none(make_story: Any, cut: int) -> None:
    records = make_story("finished").records
    whole = ListTracker()
    Follower(whole).update(records)
    first = ListTracker()
    Follower(first).update(records[:cut])
    second = ListTracker(first.last_step)
    follower = Follower(second)
    follower.update(records[: cut + 3])
    follower.update(records[cut + 3 :])
    assert first.points + second.points == whole.points


def test_secrets_stay_out_of_the_config() -> None:
    config = public_config(
        {
            "model": {
                "base_url": "https://user:CANARY@host/v1?key=CANARY",
                "api_key": "CANARY",
                "max_tokens": 5,
                "headers": [{"Authorization": "CANARY"}, "http://u:CANARY@host"],
            },
            "token": "CANARY",
            "monkey": 1,
        }
    )
    assert "CANARY" not in repr(config)
    assert config["model"]["max_tokens"] == 5  # type: ignore[index]
    assert config["monkey"] == 1


def test_wandb_is_not_needed_unless_it_is_asked_for(tmp_path: Path) -> None:
    def without() -> bool:
        return False

    for word in ("auto", "off"):
        plan = TrackingPlan(wandb=word)
        tracker = choose_tracker(plan, "demo", tmp_path, {}, installed=without)
        assert isinstance(tracker, NullTracker)
        tracker.log(1, {"a": 1.0})
        tracker.finish({})
        assert tracker.last_step == -1
    with pytest.raises(ConfigError, match="pip install wandb"):
        choose_tracker(TrackingPlan(wandb="offline"), "demo", tmp_path, {}, installed=without)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tracking\.wandb: expected one of auto, offline"):
        choose_tracker(TrackingPlan(wandb="ofline"), "demo", tmp_path, {})


def test_a_runs_id_is_its_own_also_where_another_multirun_has_a_job_of_its_name() -> None:
    """With one id for both, wandb would take the second for the first, and drop its points."""
    assert run_id("0-seed=1", 1.5) == run_id("0-seed=1", 1.5)
    assert len({run_id("0-seed=1", 1.5), run_id("0-seed=1", 2.5), run_id("1-seed=2", 1.5)}) == 3


class FakeRun:
    """An online run that was resumed at step 12 and loses its connection at step 14."""

    resumed, step = True, 12

    def __init__(self) -> None:
        self.logged: list[int] = []
        self.summary: dict[str, object] = {}
        self.axes: dict[str, str | None] = {}
        self.kept: list[Any] = []

    def define_metric(self, name: str, step_metric: str | None = None) -> None:
        self.axes[name] = step_metric

    def log_artifact(self, artifact: Any, aliases: list[str]) -> None:
        self.kept.append((artifact, aliases))

    def log(self, values: Mapping[str, float], step: int, commit: bool) -> None:
        if step >= 14:
            raise OSError("connection lost")
        self.logged.append(step)

    def finish(self) -> None:
        raise OSError("connection lost")


class FakeArtifact:
    def __init__(self, name: str, **given: Any) -> None:
        self.name, self.given = name, given
        self.folder = Path()

    def add_dir(self, folder: str, **given: Any) -> None:
        self.folder = Path(folder)


@pytest.fixture
def fake_wandb(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("wandb")
    module.Error = type("Error", (Exception,), {})  # type: ignore[attr-defined]
    module.Settings = lambda **settings: settings  # type: ignore[attr-defined]
    run = FakeRun()
    module.run = run  # type: ignore[attr-defined]
    module.init = lambda **given: run  # type: ignore[attr-defined]
    module.Table = lambda columns, data: {"columns": columns, "data": data}  # type: ignore[attr-defined]
    module.Artifact = FakeArtifact  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


def _choose(word: str, directory: Path) -> Any:
    return choose_tracker(TrackingPlan(wandb=word), "demo", directory, {}, installed=lambda: True)


def test_an_online_run_goes_on_after_its_own_last_step(
    fake_wandb: types.ModuleType, tmp_path: Path
) -> None:
    tracker = _choose("online", tmp_path)
    assert tracker.last_step == 11
    for step in (10, 11, 12, 13):
        tracker.log(step, {"a": 1.0})
    assert fake_wandb.run.logged == [12, 13]


def test_an_online_run_gets_the_candidates_and_the_best_harness_without_a_step(
    fake_wandb: types.ModuleType, tmp_path: Path
) -> None:
    """A table that took a step would take it from a point of the resumed run."""
    tracker = _choose("online", tmp_path)
    tracker.log(12, {"a": 1.0})
    row = ("i1.2", *[None] * (len(COLUMNS) - 1))
    found = Findings(
        rows=(row,),
        best="i1.2",
        tree=FileTree.of_texts({"main.py": "pass", "tools/a.py": "x"}),
        lineage={"candidate": "i1.2", "path": []},
    )
    tracker.publish(lambda: found)
    run = fake_wandb.run
    assert run.logged == [12]
    assert run.summary["candidates"] == {"columns": list(COLUMNS), "data": [list(row)]}
    ((artifact, aliases),) = run.kept
    assert aliases == ["best"] and artifact.given["metadata"]["candidate"] == "i1.2"
    assert FileTree.from_dir(artifact.folder) == found.tree
    assert artifact.folder.is_relative_to(tmp_path)
    assert run.axes["population/*"] == run.axes["island/*"] == "spent/attempts"
    assert tracker.fault == ""


def test_a_wandb_that_fails_on_the_way_never_ends_the_run(
    fake_wandb: types.ModuleType, tmp_path: Path
) -> None:
    tracker = _choose("online", tmp_path)
    for step in (13, 14, 15):
        tracker.log(step, {"a": 1.0})
    assert "connection lost" in tracker.fault
    assert tracker.last_step == 13
    tracker.finish({})
    assert fake_wandb.run.logged == [13]


def test_a_wandb_that_does_not_open_is_a_mistake_only_where_it_was_asked_for(
    fake_wandb: types.ModuleType, tmp_path: Path
) -> None:
    def refuse(**given: object) -> None:
        raise fake_wandb.Error("not logged in")

    fake_wandb.init = refuse  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="not logged in"):
        _choose("online", tmp_path)
    tracker = _choose("auto", tmp_path)
    assert isinstance(tracker, NullTracker)
    assert "not logged in" in tracker.fault


def _steps(directory: Path) -> list[int]:
    (path,) = (directory / "wandb").glob("offline-run-*/run-*.wandb")
    return [
        record.history.step.num
        for record in wandb_records(path)
        if record.WhichOneof("record_type") == "history"
    ]


def _wait_for_wandb() -> None:
    """wandb's process writes the tail of a finished run a moment later; its end is the proof."""
    import wandb

    wandb.teardown()


@needs_wandb
def test_an_offline_run_that_was_left_and_resumed_holds_every_step_once(
    make_story: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a user who syncs after a crash sees doubled or missing rounds."""
    monkeypatch.setenv("WANDB_API_KEY", "CANARY" * 7)
    records = make_story("finished").records
    expected = [point.step for point in tracker_points(records)]
    config = {"model": {"name": "local", "api_key": "CANARY"}}
    for part in (records[:20], records):
        tracker = choose_tracker(TrackingPlan(wandb="auto"), "demo", tmp_path, config)
        assert tracker.last_step == -1
        Follower(tracker).update(part)
        tracker.log(3, {"late": 1.0})
        tracker.finish({"winner": "i2.2", "gain": float("nan")})
        assert tracker.fault == ""
    _wait_for_wandb()
    assert _steps(tmp_path) == expected
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"CANARY" not in written


# --- TensorBoard, the other implementation of the port -------------------------------------------


def _events(folder: Path) -> Iterator[Any]:
    """The events of TensorBoard's files: length, checksum, data, checksum."""
    from tensorboardX.proto import event_pb2

    for path in sorted(folder.glob("events.*")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            event = event_pb2.Event()
            event.ParseFromString(data[at + 12 : at + 12 + size])
            yield event
            at += 16 + size


def _scalars(folder: Path) -> list[tuple[int, str, float]]:
    return [
        (event.step, value.tag, value.simple_value)
        for event in _events(folder)
        for value in event.summary.value
        if value.HasField("simple_value")
    ]


needs_tensorboard = pytest.mark.skipif(
    importlib.util.find_spec("tensorboardX") is None, reason="tensorboardX is not installed"
)


@needs_tensorboard
def test_tensorboard_holds_every_point_once_after_a_stop_and_a_resume(
    make_story: Any, tmp_path: Path
) -> None:
    records = make_story("finished").records
    plan = TrackingPlan(wandb="off", tensorboard=True)
    for part in (records[:20], records):
        tracker = choose_tracker(plan, "demo", tmp_path, {})
        assert tracker.last_step == -1
        Follower(tracker).update(part)
        tracker.log(3, {"late": 1.0})
        row = ("i2.2 | <b>", *[None] * (len(COLUMNS) - 1))
        found = Findings(rows=(row,), best="i2.2", lineage={"candidate": "i2.2"})
        tracker.publish(lambda found=found: found)
        tracker.finish({"winner": "i2.2"})
        assert tracker.fault == ""
    wanted = [
        (point.step, name, pytest.approx(value))
        for point in tracker_points(records)
        for name, value in point.values.items()
    ]
    assert sorted(_scalars(tmp_path / "tensorboard")) == sorted(wanted, key=lambda w: w[:2])
    texts = b"".join(p.read_bytes() for p in (tmp_path / "tensorboard").iterdir())
    assert rb"i2.2 \| \<b\>" in texts and b'"candidate": "i2.2"' in texts


def test_several_trackers_each_get_what_they_lack() -> None:
    first, second = ListTracker(4), ListTracker(-1)
    both = EveryTracker(first, second)
    assert both.last_step == -1
    for step in (2, 6):
        both.log(step, {"a": 1.0})
    assert [step for step, _ in first.points] == [6]
    assert [step for step, _ in second.points] == [2, 6]
    second.fault = "the disk is full"
    assert both.fault == "the disk is full"


def test_tensorboard_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ConfigError, match="pip install 'milo-harness\\[tensorboard\\]'"):
        choose_tracker(TrackingPlan(wandb="off", tensorboard=True), "demo", tmp_path, {})
