"""What every keeper of a run's records does: the run directory, and its stand-in in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from milo.core.attempt import AttemptKey, Outcome, Status, Usage
from milo.core.errors import StaleWriter
from milo.core.events import RunEnded, RunResumed
from milo.core.evidence import Trace
from milo.core.harness import Harness
from milo.core.tree import FileTree
from milo.runtime.parts import Records
from milo.store import RunStore
from milo.testing.memory_records import MemoryRecords


class FixedClock:
    """A clock that stands."""

    def now(self) -> float:
        return 7.0


def outcome(index: int, reward: float | None = 0.5) -> Outcome:
    key = AttemptKey(harness="h", task="t", task_digest="d", model="m", index=index)
    status = Status.COMPLETED if reward is not None else Status.MODEL_ERROR
    return Outcome(key=key, status=status, reward=reward, usage=Usage(output=3))


def a_harness() -> Harness:
    texts = {"harness.toml": 'name = "x"\nentry = "python3 main.py"\n', "main.py": ""}
    return Harness.from_tree(FileTree.of_texts(texts))


class RecordsCase:
    """Subclasses give the fixture `records`."""

    def test_records_of_all_shards_are_numbered_in_one_order(self, records: Records) -> None:
        a, b = records.claim("a"), records.claim("b")
        written = [
            *records.append("a", a, [RunResumed(), RunResumed()]),
            *records.append("b", b, [RunEnded(reason="x", searched=False)]),
        ]
        assert list(records.records()) == written
        assert [record.seq for record in written] == [0, 1, 2]
        assert list(records.records(2)) == written[2:]

    def test_an_older_claim_may_no_longer_write(self, records: Records) -> None:
        old = records.claim("a")
        new = records.claim("a")
        with pytest.raises(StaleWriter):
            records.append("a", old, [RunResumed()])
        assert records.append("a", new, [RunResumed()])[0].epoch == new

    def test_an_empty_append_is_no_record(self, records: Records) -> None:
        assert records.append("a", records.claim("a"), []) == ()
        assert not list(records.records())

    def test_only_valid_outcomes_are_looked_up_and_the_first_stays(self, records: Records) -> None:
        records.append_attempts([outcome(0), outcome(1, None)])
        records.append_attempts([outcome(0, 1.0)])
        keys = [outcome(i).key for i in range(3)]
        assert dict(records.lookup(keys)) == {keys[0]: outcome(0)}
        records.append_attempts([outcome(1, 0.25)])
        assert records.lookup(keys)[keys[1]] == outcome(1, 0.25)
        assert records.spent_by_attempts()[0] == 2

    def test_traces_and_harnesses_come_back(self, records: Records) -> None:
        trace = Trace(stdout="x", exit_code=1)
        assert records.get_trace(records.put_trace(trace)) == trace
        records.put_session("scope", trace)
        for _ in range(2):
            records.put_harness("i0.0", a_harness(), (), "seed")
        assert records.get_harness("i0.0") == a_harness()


class TestRunStore(RecordsCase):
    @pytest.fixture
    def records(self, tmp_path: Path) -> Iterator[Records]:
        with RunStore.create(tmp_path, "r", {}, clock=FixedClock(), min_free_bytes=0) as store:
            yield store


class TestMemoryRecords(RecordsCase):
    @pytest.fixture
    def records(self) -> Records:
        return MemoryRecords()
