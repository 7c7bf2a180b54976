"""The note that a running search leaves: in step it answers for the journal, else it is ignored."""

from __future__ import annotations

import errno
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from milo.core.attempt import Outcome, Status, Usage
from milo.core.budget import Budget, Spend
from milo.core.calls import CallEntry, CallMark
from milo.core.plan import RunPlan
from milo.store import RunReader, RunStore, encode_plan
from milo.store.calls import CallLog
from milo.store.codec import encode
from milo.store.files import Disk
from milo.store.lock import Owner
from milo.testing.synthetic_run import SyntheticRun
from milo.views.plain import PlainView
from milo.views.progress_file import (
    NotedView,
    live_snapshot,
    quick_status,
    read_note,
    standing,
)
from milo.views.spending import split_of_tasks, tally
from milo.views.status import RunState, status_json, status_of, status_text
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


def test_a_run_on_another_machine_goes_on_while_its_note_is_fresh(run: Path) -> None:
    """Over a shared file system nobody can look for the process, but its notes keep coming."""
    journal = run / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    view = NotedView(PlainView(io.StringIO()), run, lambda: 6100.0)
    view.start("t")
    view.progress(Progress(budget=Budget(), slots_busy=4, slots_total=8, queued=9))
    assert quick(run).state is RunState.INTERRUPTED
    there = Owner(pid=7, host="another", boot="b", started="1")
    (run / "lock").write_bytes(encode(there))
    assert (quick(run).state, quick(run).queued) == (RunState.RUNNING, 9)
    with RunReader(run) as reader:
        assert quick_status(reader, 9000.0).state is RunState.INTERRUPTED


def test_what_a_kill_cut_is_charged_and_told(run: Path) -> None:
    def entry(mark: CallMark) -> CallEntry:
        amount = Spend(tokens=100, dollars=0.25)
        return CallEntry(mark=mark, role="target", call="c", scope="a", amount=amount)

    log = CallLog(run / "calls.jsonl", Disk())
    log.append([entry(CallMark.RESERVED), entry(CallMark.UNSETTLED)])
    log.close()
    found = quick(run)
    assert found.spent == Spend(attempts=found.coverage.attempted, tokens=100, dollars=0.25)
    told = json.loads(status_json(found))["unsettled"]
    assert told == {"calls": 1, "roles": ["target"], "tokens": 100, "dollars": 0.25}
    assert "unsettled: 1 call (target) cut by a kill" in status_text(found)


@pytest.mark.parametrize("with_note", [False, True])
def test_a_torn_end_of_the_journal_is_said_unless_it_is_being_written(
    run: Path, with_note: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if with_note:
        note(run).stop()
    with (run / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"kind":"run_')
    assert "warning: " in status_text(quick(run)) and "ignored 13 bytes" in quick(run).warnings[0]
    monkeypatch.setattr(RunReader, "owner", lambda _: object())
    assert quick(run).warnings == ()


def test_a_run_that_goes_on_starts_its_picture_from_what_is_spent(run: Path) -> None:
    """While a cluster starts, a resumed run must not be shown as one that has spent nothing."""
    limits = Budget(hours=9)
    with RunReader(run) as reader:
        found = standing(reader, limits, 6100.0)
    past = quick(run)
    assert found.budget == limits and found.slots_total == 0
    assert (found.spent, found.seconds) == (past.spent, past.active_s) and found.spent.attempts > 9


def test_a_full_disk_costs_the_note_and_not_the_search(run: Path) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    view = NotedView(PlainView(io.StringIO()), run, lambda: 6000.0, Disk(write=full))
    with RunReader(run) as reader:
        view.start("t", ())
        view.update(tuple(reader.records()))
    view.progress(Progress(budget=Budget()))
    view.stop()
    assert read_note(run) is None


def test_a_dead_run_tells_no_queue(run: Path) -> None:
    view = NotedView(PlainView(io.StringIO()), run, lambda: 6100.0)
    view.start("t")
    view.progress(Progress(budget=Budget(), slots_busy=4, slots_total=8, queued=9))
    assert quick(run).queued is None
