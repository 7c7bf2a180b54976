"""The note that a running search leaves: in step it answers for the journal, else it is ignored."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from milo.core.attempt import Outcome, Status, Usage
from milo.core.budget import Budget
from milo.core.plan import RunPlan
from milo.store import RunReader, RunStore, encode_plan
from milo.store.codec import encode
from milo.testing.synthetic_run import SyntheticRun
from milo.views.plain import PlainView
from milo.views.progress_file import NotedView, live_snapshot, quick_status, read_note
from milo.views.spending import split_of_tasks, tally
from milo.views.status import RunState, status_of
from milo.views.status_fold import Folded
from milo.views.view import Progress, Work


class Clock:
    def now(self) -> float:
        return 5000.0


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = SyntheticRun(candidates=30, rng=np.random.default_rng(5), islands=2, tasks=3)
    path = tmp_path / "run"
    store = RunStore.create(
        path, "run", encode_plan(RunPlan()), clock=Clock(), min_free_bytes=0, part_rows=50
    )
    with store:
        epochs: dict[str, int] = {}
        for shard, events in made.groups():
            epochs.setdefault(shard, 0)
            epochs[shard] = epochs[shard] or store.claim(shard)
            store.append(shard, epochs[shard], events)
        missing = [_missing(outcome) for outcome in made.outcomes[:7]]
        store.append_attempts(missing)
        store.append_attempts(made.outcomes[5:])
    return path


def _missing(outcome: Outcome) -> Outcome:
    return replace(outcome, status=Status.MODEL_ERROR, reward=None, usage=Usage(output=3, calls=1))


def note(run: Path, upto: int | None = None) -> NotedView:
    view = NotedView(PlainView(io.StringIO()), run, lambda: 6000.0)
    with RunReader(run) as reader:
        records = list(reader.records())
    view.start("t", records[:5])
    view.update(records[5:upto])
    return view


def by_rows(run: Path) -> Any:
    with RunReader(run) as reader:
        population = reader.population()
        sums = tally(reader.attempts.iter(), split_of_tasks(population))
        return status_of(reader.records(), sums, run=str(run), alive=False, now=6100.0)


def quick(run: Path) -> Any:
    with RunReader(run) as reader:
        return quick_status(reader, 6100.0)


def test_attempts_counted_by_columns_agree_with_a_count_row_by_row(run: Path) -> None:
    rows, columns = by_rows(run), quick(run)
    assert columns.coverage == rows.coverage
    assert columns.faults == rows.faults == {"model_error": 5}
    assert columns.islands == rows.islands


def test_what_was_paid_for_replaced_attempts_stays_paid(run: Path) -> None:
    replaced = quick(run).spend["target"].tokens - by_rows(run).spend["target"].tokens
    assert replaced == 2 * 3


def test_a_note_in_step_answers_exactly_as_the_journal_does(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = quick(run)
    note(run)
    monkeypatch.setattr(RunReader, "records", lambda *_: pytest.fail("the journal was folded"))
    assert quick(run) == plain


def test_a_note_that_the_journal_has_left_behind_is_carried_on(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that was killed between a record and its note must not show an old state."""
    plain = quick(run)
    note(run, upto=-3)
    monkeypatch.setattr(RunReader, "records", lambda *_: pytest.fail("the journal was folded"))
    assert quick(run) == plain


def test_a_note_of_another_journal_is_not_believed(run: Path) -> None:
    plain = quick(run)
    note(run)
    written = read_note(run)
    assert written is not None
    other = replace(written, mark=written.mark._replace(crc=written.mark.crc ^ 1))
    (run / "progress.json").write_bytes(encode(replace(other, past=Folded())))
    assert quick(run) == plain


@pytest.mark.parametrize("content", [b"", b"{", b'{"seq": 1}'])
def test_a_damaged_note_is_as_good_as_none(run: Path, content: bytes) -> None:
    plain = quick(run)
    (run / "progress.json").write_bytes(content)
    assert read_note(run) is None
    assert quick(run) == plain


def test_a_live_run_tells_its_queue_and_what_is_in_flight(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = note(run, upto=-1)
    work = Work(doing="scoring", candidate="i1.3", parent="i1.1", done=2, wanted=6)
    snapshot = Progress(
        budget=Budget(rounds=3), slots_busy=4, slots_total=8, queued=9, islands={"i1": work}
    )
    view.progress(snapshot)
    assert live_snapshot(run, 6001.0) is None, "the first note is younger than two seconds"
    view.stop()
    view = NotedView(PlainView(io.StringIO()), run, lambda: 6100.0)
    view.start("t")
    view.progress(snapshot)
    assert live_snapshot(run, 6101.0) == snapshot
    assert live_snapshot(run, 7000.0) is None
    monkeypatch.setattr(RunReader, "owner", lambda _: object())
    found = quick(run)
    assert (found.queued, found.in_flight, found.state) == (9, 4, RunState.FINISHED)


def test_a_dead_run_tells_no_queue(run: Path) -> None:
    view = NotedView(PlainView(io.StringIO()), run, lambda: 6100.0)
    view.start("t")
    view.progress(Progress(budget=Budget(), slots_busy=4, slots_total=8, queued=9))
    assert quick(run).queued is None
