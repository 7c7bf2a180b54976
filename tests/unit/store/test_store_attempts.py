"""The attempts table: every outcome once, whatever order and crashes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from store_builders import FailingWrites, key, missing, valid

from milo.core.attempt import AttemptKey, Outcome, Status, Usage
from milo.core.errors import DiskFull, RecordError
from milo.store.attempt_rows import to_parquet
from milo.store.attempts import AttemptTable, read_table
from milo.store.files import Disk
from milo.store.key_index import KeyIndex, hash_keys
from milo.store.sums import read_sums

NO_SYNC = Disk(sync=lambda _: None)


def a_table(folder: Path, rows: int = 1000) -> AttemptTable:
    return AttemptTable.own(folder, NO_SYNC, rows)


def test_outcomes_come_back_exactly_before_and_after_compaction(tmp_path: Path) -> None:
    outcomes = [
        valid(key(0), 1 / 3, tries=2),
        valid(key(1), 0, flags=(), usage=Usage(dollars=None, estimated=True, reasoning=4)),
        missing(key(2)),
        Outcome(key=key(3), status=Status.AGENT_TIMEOUT, reward=1.0, resolved=True, detail="ü\n"),
    ]
    table = a_table(tmp_path)
    assert table.append(outcomes) == tuple(outcomes)
    assert list(table.iter()) == outcomes
    table.compact()
    assert list(table.iter()) == outcomes
    table.close()
    assert list(AttemptTable.read(tmp_path).iter()) == outcomes


def test_lookup_gives_valid_outcomes_only_and_newest_gives_all(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.append([valid(key(0)), missing(key(1))])
    for _ in range(2):
        assert table.lookup([key(0), key(1), key(2)]) == {key(0): valid(key(0))}
        assert list(table.newest([key(1), key(0), key(2)])) == [key(1), key(0)]
        table.compact()
    table.close()


@pytest.mark.parametrize("compacted", [False, True])
def test_a_valid_outcome_is_final_and_a_missing_one_is_not(tmp_path: Path, compacted: bool) -> None:
    table = a_table(tmp_path)
    assert table.append([missing(key(), "first")])
    if compacted:
        table.compact()
    assert not table.append([missing(key(), "first")]), "delivered twice"
    assert table.append([missing(key(), "second")])
    assert table.append([valid(key(), 0.25)])
    if compacted:
        table.compact()
    assert not table.append([valid(key(), 0.75), missing(key(), "third")])
    assert table.lookup([key()])[key()].reward == 0.25
    assert (table.count, table.valid_count) == (1, 1)
    assert table.spent().uncached_input == 5 + 5 + 7, "what was paid stays paid"
    table.close()


def test_one_call_may_hold_the_same_key_twice(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    news = table.append([missing(key()), valid(key(), 0.1), valid(key(), 0.2)])
    assert [outcome.reward for outcome in news] == [None, 0.1]
    table.close()


def test_a_kill_at_any_byte_of_an_append_keeps_a_prefix_of_it(tmp_path: Path) -> None:
    small = [
        Outcome(
            key=AttemptKey(harness="h", task="t", task_digest="d", model="m", index=i),
            status=Status.COMPLETED,
            reward=0.5,
        )
        for i in range(3)
    ]
    table = a_table(tmp_path)
    table.append(small[:1])
    pending = tmp_path / "pending.jsonl"
    start = pending.stat().st_size
    table.append(small[1:])
    table.close()
    data = pending.read_bytes()
    second = data.index(b"\n", start) + 1
    for cut in range(start, len(data)):
        pending.write_bytes(data[:cut])
        read = AttemptTable.read(tmp_path)
        assert read.count == (2 if cut >= second else 1)
        assert bool(read.warnings) == (cut not in (start, second))
    again = a_table(tmp_path)
    assert again.append([small[0], small[2]]) == (small[2],)
    again.close()
    assert AttemptTable.read(tmp_path).count == 3


def test_a_crash_between_the_new_part_and_the_emptied_file_counts_nothing_twice(
    tmp_path: Path,
) -> None:
    table = a_table(tmp_path)
    table.append([missing(key(0), "one"), missing(key(0), "two"), valid(key(1))])
    before = (tmp_path / "pending.jsonl").read_bytes()
    spent = table.spent()
    table.compact()
    table.close()
    (tmp_path / "pending.jsonl").write_bytes(before)
    assert AttemptTable.read(tmp_path).count == 2
    again = a_table(tmp_path)
    assert (again.count, again.spent()) == (2, spent)
    assert (tmp_path / "pending.jsonl").read_bytes() == b""
    again.close()


def test_parts_appear_by_themselves_and_are_read_together(tmp_path: Path) -> None:
    table = a_table(tmp_path, rows=10)
    for start in range(0, 35, 5):
        table.append([valid(key(i), harness_ok(i)) for i in range(start, start + 5)])
    table.close()
    assert len(list(tmp_path.glob("part-*.parquet"))) == 3
    read = AttemptTable.read(tmp_path)
    assert [outcome.key.index for outcome in read.iter()] == list(range(35))
    assert read.lookup([key(31), key(2)]) == {key(i): valid(key(i), harness_ok(i)) for i in (31, 2)}


def harness_ok(index: int) -> float:
    return index / 35


def test_the_outcomes_of_one_harness_are_found(tmp_path: Path) -> None:
    table = a_table(tmp_path, rows=4)
    for index in range(5):
        table.append([valid(key(index, "a")), missing(key(index, "b"))])
    table.append([valid(key(0, "b"))])
    assert {o.key.index for o in table.of_harness("a" * 64)} == set(range(5))
    of_b = table.of_harness("b" * 64)
    assert len(of_b) == 5
    assert [o.key.index for o in of_b if o.is_valid] == [0]
    assert table.of_harness("c" * 64) == ()
    assert table.harnesses("b") == ("b" * 64,)
    table.close()


def test_the_table_for_users_has_typed_columns_and_the_newest_rows(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.append([missing(key(0)), valid(key(1))])
    table.compact()
    table.append([valid(key(0), 1.0)])
    table.close()
    arrow = read_table(tmp_path)
    assert sorted(arrow["reward"].to_pylist()) == [0.5, 1.0]
    assert arrow.schema.field("uncached_input").type == pa.int64()
    assert arrow.schema.field("harness").type == pa.string()


def test_an_empty_run_has_an_empty_table(tmp_path: Path) -> None:
    a_table(tmp_path).close()
    assert read_table(tmp_path).num_rows == 0
    assert AttemptTable.read(tmp_path).spent() == Usage()


def test_a_full_disk_loses_no_outcome_and_the_call_may_be_repeated(tmp_path: Path) -> None:
    writes = FailingWrites(10**6)
    table = AttemptTable.own(tmp_path, Disk(write=writes, sync=lambda _: None), 3)
    table.append([valid(key(0)), valid(key(1))])
    writes.room = 100
    with pytest.raises(DiskFull):
        table.append([valid(key(2))])
    assert table.count == 2
    writes.room = len((tmp_path / "pending.jsonl").read_bytes())
    with pytest.raises(DiskFull, match="part-00001"):
        table.append([valid(key(2))])
    assert table.count == 3
    writes.room = 10**6
    assert table.append([valid(key(2))]) == ()
    table.close()
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["part-00001.parquet", "pending.jsonl", "sums.json"]
    assert AttemptTable.read(tmp_path).count == 3


def test_a_damaged_or_missing_part_is_named(tmp_path: Path) -> None:
    table = a_table(tmp_path, rows=1)
    for index in range(3):
        table.append([valid(key(index))])
    table.close()
    part = tmp_path / "part-00002.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(RecordError, match="part-00002"):
        AttemptTable.read(tmp_path)
    part.unlink()
    with pytest.raises(RecordError, match=r"part-00002.*missing"):
        AttemptTable.read(tmp_path)


def test_a_reader_may_not_write(tmp_path: Path) -> None:
    a_table(tmp_path).close()
    table = AttemptTable.read(tmp_path)
    for forbidden in (lambda: table.append([valid(key())]), table.compact):
        with pytest.raises(RecordError, match="reading only"):
            forbidden()


def test_a_reader_that_opened_before_a_compaction_sees_all_that_was_there(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.append([valid(key(0)), valid(key(1))])
    reader = AttemptTable.read(tmp_path)
    table.compact()
    table.append([valid(key(2))])
    assert len(list(reader.iter())) == 2
    assert AttemptTable.read(tmp_path).count == 3
    table.close()


@pytest.mark.parametrize("name", ["part-00001.parquet", "part-00002.parquet"])
def test_sums_of_other_parts_are_not_believed(tmp_path: Path, name: str) -> None:
    table = a_table(tmp_path)
    for number in range(2):
        table.append([valid(key(number))])
        table.compact()
    table.close()
    known = read_sums(tmp_path)
    assert known is not None and known.made == 2
    other = tmp_path / "other"
    other.mkdir()
    for number in range(2):
        (other / f"part-0000{number + 1}.parquet").write_bytes(
            to_parquet([missing(key(number + 2 * (name[9] == str(number + 1))))])
        )
    (tmp_path / name).write_bytes((other / name).read_bytes())
    assert read_sums(tmp_path) is None
    assert AttemptTable.read(tmp_path).sums().valid == 1


def test_different_keys_have_different_hashes() -> None:
    keys = [
        key(1),
        key(11),
        AttemptKey(harness="a", task="b", task_digest="c", model="d", index=1, replicate=2),
        AttemptKey(harness="a", task="b", task_digest="c", model="d", index=2, replicate=1),
        AttemptKey(harness="a", task="bc", task_digest="", model="d", index=1, replicate=2),
    ]
    assert len({tuple(map(int, pair)) for pair in zip(*hash_keys(keys), strict=True)}) == 5


def test_the_hash_of_a_key_is_part_of_the_format() -> None:
    high, low = hash_keys([key(3)])
    assert (int(high[0]), int(low[0])) == (HIGH, LOW)


HIGH, LOW = 2139303586554847542, 12722520720760204236


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=12),
        max_size=4,
    )
)
def test_the_index_finds_the_last_row_of_each_key_though_halves_collide(
    batches: list[list[tuple[int, int, bool]]],
) -> None:
    index, last, row = KeyIndex.empty(), {}, 0
    for batch in batches:
        columns = np.array(batch, dtype=np.uint64).reshape(-1, 3)
        index = index.extended(columns[:, 0], columns[:, 1], columns[:, 2].astype(bool), row)
        for high, low, ok in batch:
            last[(high, low)] = (row, ok)
            row += 1
    asked = np.array([(h, low) for h in range(5) for low in range(5)], dtype=np.uint64)
    found = index.find(asked[:, 0], asked[:, 1])
    for (high, low), at in zip(asked.tolist(), found.tolist(), strict=True):
        here = None if at < 0 else (int(index.row[at]), bool(index.valid[at]))
        assert here == last.get((high, low))
    assert len(index) == len(last)


class AttemptsMachine(RuleBasedStateMachine):
    """Append, compact, kill and reopen in any order, against a dictionary."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        for path in self.folder.iterdir():
            path.unlink()
        self.model: dict[AttemptKey, Outcome] = {}
        self.tokens = 0
        self.table = a_table(self.folder, rows=5)

    @rule(
        attempts=st.lists(
            st.tuples(st.integers(0, 6), st.sampled_from(["ab", "c"]), st.integers(0, 3)),
            max_size=4,
        )
    )
    def append(self, attempts: list[tuple[int, str, int]]) -> None:
        outcomes = [
            valid(key(index, names[0]), number / 4) if number else missing(key(index, names[0]))
            for index, names, number in attempts
        ]
        news = []
        for outcome in outcomes:
            former = self.model.get(outcome.key)
            if former is None or (not former.is_valid and former != outcome):
                self.model[outcome.key] = outcome
                self.tokens += outcome.usage.tokens
                news.append(outcome)
        assert self.table.append(outcomes) == tuple(news)

    @rule()
    def compact(self) -> None:
        self.table.compact()

    @rule(tear=st.binary(max_size=5).filter(lambda b: b"\n" not in b))
    def kill_in_the_middle_of_a_write_and_reopen(self, tear: bytes) -> None:
        self.table.close()
        with (self.folder / "pending.jsonl").open("ab") as pending:
            pending.write(tear)
        self.table = a_table(self.folder, rows=5)
        assert bool(self.table.warnings) == bool(tear)

    @rule()
    def kill_between_the_part_and_the_emptied_file(self) -> None:
        pending = self.folder / "pending.jsonl"
        before = pending.read_bytes()
        self.table.compact()
        self.table.close()
        pending.write_bytes(before)
        self.table = a_table(self.folder, rows=5)

    @rule()
    def kill_before_the_part_is_renamed(self) -> None:
        self.table.close()
        (self.folder / ".part-00099.parquet.tmp").write_bytes(b"half")
        self.table = a_table(self.folder, rows=5)

    @rule()
    def lose_the_sums_and_reopen(self) -> None:
        self.table.close()
        (self.folder / "sums.json").unlink()
        self.table = a_table(self.folder, rows=5)

    @invariant()
    def sums_are_told_without_opening_the_table(self) -> None:
        told, by_table = read_sums(self.folder), self.table.sums()
        faults = Counter(str(o.status) for o in self.model.values() if not o.is_valid)
        assert told == by_table and told is not None
        assert (told.made, dict(told.faults)) == (len(self.model), dict(faults))
        assert told.valid == len(self.model) - sum(faults.values())
        assert told.usage.tokens == self.tokens

    @invariant()
    def agrees(self) -> None:
        assert self.table.newest(self.model) == self.model
        assert self.table.count == len(self.model)
        assert self.table.valid_count == sum(o.is_valid for o in self.model.values())
        assert {o.key: o for o in self.table.iter()} == self.model
        assert self.table.spent().tokens == self.tokens
        for digest in ("a" * 64, "c" * 64):
            mine = {k: o for k, o in self.model.items() if k.harness == digest}
            assert {o.key: o for o in self.table.of_harness(digest)} == mine

    def teardown(self) -> None:
        self.table.close()


def test_any_order_of_appends_compactions_and_kills_keeps_every_outcome_once(
    tmp_path: Path,
) -> None:
    machine = type("Machine", (AttemptsMachine,), {"folder": tmp_path})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
