"""The ledger of model calls on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_builders import FailingWrites

from milo.core.budget import Spend
from milo.core.calls import CallEntry, CallMark
from milo.core.errors import DiskFull, RecordError
from milo.store import CallLog, Disk


def entry(mark: CallMark, call: str, tokens: int = 10) -> CallEntry:
    amount = Spend(tokens=tokens, dollars=tokens / 7)
    return CallEntry(mark=mark, role="target", call=call, scope="a/b", amount=amount)


def test_what_was_written_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    log = CallLog(path, Disk())
    assert not log.known
    log.append([entry(CallMark.RESERVED, "1"), entry(CallMark.RESERVED, "2")])
    log.append([entry(CallMark.SETTLED, "1", 3)])
    again = CallLog(path)  # as another process sees it, with the owner alive or killed
    assert again.known and again.book.open.keys() == {"2"}
    assert again.book.total == log.book.total == Spend(tokens=3, dollars=3 / 7)
    log.close()
    log.close()


def test_a_torn_line_is_cut_off_and_said(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    log = CallLog(path, Disk())
    log.append([entry(CallMark.RESERVED, "1")])
    log.close()
    with path.open("ab") as file:
        file.write(b'{"mark":"settled","call":"1","am')
    again = CallLog(path, Disk())
    assert "not written to its end" in again.warnings[0]
    again.append([entry(CallMark.SETTLED, "1", 5)])
    again.close()
    assert CallLog(path).book.total.tokens == 5


def test_a_grown_file_is_renewed_and_says_the_same(tmp_path: Path) -> None:
    """A night of calls must not cost its resume a minute."""
    path = tmp_path / "calls.jsonl"
    log = CallLog(path, Disk(), renew_bytes=20_000)
    log.append([entry(CallMark.UNSETTLED, "lost", 100), entry(CallMark.RESERVED, "open")])
    for nth in range(1000):
        log.append([entry(CallMark.RESERVED, f"{nth}")])
        log.append([entry(CallMark.SETTLED, f"{nth}", nth % 5)])
    log.close()
    assert path.stat().st_size < 21_000
    again = CallLog(path).book
    assert again.total.tokens == log.book.total.tokens == 2100
    assert again.total.dollars == pytest.approx(log.book.total.dollars)
    assert [one.call for one in again.unsettled] == ["lost"] and again.open.keys() == {"open"}


def test_a_file_that_can_t_shrink_is_not_rewritten_at_every_call(tmp_path: Path) -> None:
    syncs: list[int] = []
    path = tmp_path / "calls.jsonl"
    log = CallLog(path, Disk(sync=syncs.append), renew_bytes=1000)
    for nth in range(200):
        log.append([entry(CallMark.RESERVED, f"{nth}")])
    assert len(syncs) < 12
    log.close()


def test_lines_that_find_the_disk_full_are_written_with_later_ones(tmp_path: Path) -> None:
    """What breaks without it: one line without room ends the run, in the middle of a call."""
    path, writes = tmp_path / "calls.jsonl", FailingWrites(0)
    log = CallLog(path, Disk(write=writes))
    log.append([entry(CallMark.RESERVED, "1")])
    log.append([entry(CallMark.SETTLED, "1", 3)])
    assert log.book.total.tokens == 3 and path.stat().st_size == 0, "counted, and not torn"
    writes.room = 10_000
    log.append([entry(CallMark.RESERVED, "2")])
    again = CallLog(path).book
    assert again.total == log.book.total and again.open.keys() == {"2"}
    log.close()


def test_lines_that_never_find_room_are_told_at_the_end(tmp_path: Path) -> None:
    log = CallLog(tmp_path / "calls.jsonl", Disk(write=FailingWrites(0)))
    log.append([entry(CallMark.RESERVED, "1")])
    with pytest.raises(DiskFull):
        log.close()
    log.close()


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="reading only"):
        CallLog(tmp_path / "calls.jsonl").append([entry(CallMark.RESERVED, "1")])
    assert not (tmp_path / "calls.jsonl").exists()
