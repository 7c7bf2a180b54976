"""The journal: whole groups or nothing, whatever kills the writer."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_builders import FailingWrites, FixedClock, judged, proposed, scored

from milo.core.attempt import Usage
from milo.core.errors import DiskFull, RecordError
from milo.core.events import (
    EVENT_TYPES,
    Consulted,
    FrameFixed,
    IslandClosed,
    IslandFounded,
    MoveApplied,
    MoveVoided,
    ProposalSentBack,
    RoundEnded,
    RunEnded,
    RunResumed,
    RunStarted,
    WinnerFrozen,
)
from milo.core.hypervolume import Frame
from milo.core.moves import (
    Consultation,
    Curriculum,
    Diagnosis,
    Graft,
    Reassign,
    Refusal,
    Speciate,
)
from milo.store.codec import decode_event, encode
from milo.store.files import Disk
from milo.store.journal import Journal, JournalMark, JournalReader

MOVES = (
    Reassign(island="a", mutator="m"),
    Graft(island="a", donor="b", donor_candidate="b1"),
    Speciate(island="a", root="a1", mutator="m", new_island="c"),
    Curriculum(tasks=("t1", "t2"), epoch=2),
)
FRAME = Frame(seed_accuracy=1 / 3, token_scale=1e-300, latency_scale=12)
EVENTS = (
    RunStarted(
        name="r",
        plan={"deep": {"list": [1, None, "x"]}, "f": 1.0},
        search=("t1",),
        validation=("t2",),
        test=(),
        model="m",
    ),
    RunResumed(overrides=("budget.hours=2",)),
    IslandFounded(island="a", mutator="m", root="a0", members=("a0",), frame=FRAME),
    proposed("a1", "a", 1, "a0", "b0"),
    scored("a1"),
    judged("a1"),
    FrameFixed(island="a", epoch=1, search=("t1",), frame=FRAME),
    RoundEnded(island="a", round=1, stall=0, best_validation=0.1),
    *(MoveApplied(island="a", round=2, move=move) for move in MOVES),
    MoveVoided(island="a", round=2, move=MOVES[0], reason="nothing is left"),
    ProposalSentBack(island="a", candidate="a2", round=2, reason="no", usage=Usage(calls=1)),
    Consulted(
        consultation=Consultation(
            island="a",
            round=2,
            diagnosis=Diagnosis.DRY_MUTATOR,
            words='said "so"\n',
            moves=MOVES[:2],
            refused=(Refusal(move=MOVES[2], reason="no"),),
        ),
        usage=Usage(output=3, dollars=None),
    ),
    IslandClosed(island="a", round=3, reason="budget"),
    WinnerFrozen(candidate="a1", island="a", rule="one_se", front=("a1",)),
    RunEnded(reason="rounds", searched=True),
)


def a_journal(path: Path, disk: Disk | None = None) -> Journal:
    return Journal(path, disk or Disk(), FixedClock())


def all_records(path: Path) -> list[object]:
    return list(JournalReader(path).records())


def test_every_kind_of_event_comes_back_exactly(tmp_path: Path) -> None:
    assert {event.kind for event in EVENTS} == set(EVENT_TYPES)
    journal = a_journal(tmp_path / "j")
    written = journal.append('sh"ard, é', 3, EVENTS)
    journal.close()
    assert tuple(all_records(tmp_path / "j")) == written
    assert [record.seq for record in written] == list(range(len(EVENTS)))


def test_a_kill_at_any_byte_of_the_last_group_loses_that_group_and_nothing_else(
    tmp_path: Path,
) -> None:
    path = tmp_path / "j"
    journal = a_journal(path)
    kept = journal.append("a", 1, [proposed("a0"), scored("a0")])
    whole_before = path.stat().st_size
    journal.append("a", 1, [judged("a0"), RunResumed(), RunResumed()])
    journal.close()
    data = path.read_bytes()
    for cut in range(whole_before, len(data)):
        path.write_bytes(data[:cut])
        reader = JournalReader(path)
        assert tuple(reader.records()) == kept
        assert (reader.end, bool(reader.warnings)) == (whole_before, cut > whole_before)
        if cut % 7 == 0:
            again = a_journal(path)
            assert again.warnings == reader.warnings
            new = again.append("a", 2, [RunResumed()])
            again.close()
            assert (*kept, *new) == tuple(all_records(path))


def test_the_warning_says_which_file_and_how_much_was_ignored(tmp_path: Path) -> None:
    path = tmp_path / "j"
    a_journal(path).close()
    path.write_bytes(b'{"kind":"run_')
    reader = JournalReader(path)
    assert not list(reader.records())
    assert f"{path}: ignored 13 bytes" in reader.warnings[0]


def test_zeros_that_a_power_cut_left_at_the_end_are_a_torn_end(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = a_journal(path)
    kept = journal.append("a", 1, [RunResumed()])
    journal.close()
    path.write_bytes(path.read_bytes() + b"\0" * 50 + b"\n")
    reader = JournalReader(path)
    assert tuple(reader.records()) == kept
    assert "51 bytes" in reader.warnings[0]


@pytest.mark.parametrize("line", [1, 2, 3])
def test_a_broken_record_in_the_middle_names_file_and_line(tmp_path: Path, line: int) -> None:
    path = tmp_path / "j"
    journal = a_journal(path)
    for _ in range(4):
        journal.append("a", 1, [RunResumed()])
    journal.close()
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b"run_resumed", b"run_resumet")
    path.write_bytes(b"".join(lines))
    with pytest.raises(RecordError, match=rf"{path}, line {line}: .*checksum"):
        all_records(path)
    with pytest.raises(RecordError, match=f"line {line}"):
        a_journal(path)


def test_a_line_that_was_taken_out_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = a_journal(path)
    for _ in range(3):
        journal.append("a", 1, [RunResumed()])
    journal.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(RecordError, match=r"line 2: expected record 1.* found record 2"):
        all_records(path)


def test_a_mark_leads_to_what_was_recorded_after_it(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = a_journal(path)
    journal.append("a", 1, [proposed("a0"), scored("a0")])
    journal.append("a", 1, [judged("a0")])
    mark = JournalMark().advanced(path, 2)
    assert mark.records == 2 and mark.holds(path)
    assert mark.advanced(path, 3) == JournalMark().advanced(path, 3) != mark
    later = journal.append("a", 1, [RunResumed(), RunResumed()])
    journal.close()
    assert mark.holds(path)
    after = list(JournalReader(path, mark).records())
    assert [record.seq for record in after] == [2, 3, 4] and after[1:] == list(later)
    assert mark.advanced(path, 4) == mark, "no group ends there"


def test_a_mark_does_not_hold_in_a_journal_that_changed_before_it(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = a_journal(path)
    journal.append("a", 1, [proposed("a0"), scored("a0")])
    mark = JournalMark().advanced(path, 2)
    journal.append("a", 1, [judged("a0")])
    journal.close()
    content = path.read_bytes()
    for at in (0, mark.offset // 2, mark.offset - 1):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert not mark.holds(path)
    path.write_bytes(content[: mark.offset - 1])
    assert not mark.holds(path)
    assert not mark.holds(tmp_path / "none") and JournalMark().holds(path)


@given(room=st.integers(min_value=0, max_value=400))
def test_a_full_disk_is_said_and_leaves_the_journal_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, room: int
) -> None:
    path = tmp_path_factory.mktemp("full") / "j"
    writes = FailingWrites(10**6)
    journal = a_journal(path, Disk(write=writes, sync=lambda _: None))
    kept = journal.append("a", 1, [RunResumed()])
    before = path.read_bytes()
    writes.room = room
    with pytest.raises(DiskFull, match="no space left"):
        journal.append("a", 1, [proposed("a0"), scored("a0")])
    assert path.read_bytes() == before
    writes.room = 10**6
    later = journal.append("a", 1, [proposed("a0")])
    journal.close()
    assert tuple(all_records(path)) == (*kept, *later)


def test_an_interrupt_in_the_middle_of_a_write_leaves_nothing_of_it(tmp_path: Path) -> None:
    def interrupted(descriptor: int, data: bytes) -> int:
        os.write(descriptor, data[:10])
        raise KeyboardInterrupt

    journal = a_journal(tmp_path / "j", Disk(write=interrupted))
    with pytest.raises(KeyboardInterrupt):
        journal.append("a", 1, [RunResumed()])
    journal.close()
    assert (tmp_path / "j").read_bytes() == b""


def test_after_a_write_that_could_not_be_taken_back_nothing_more_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = FailingWrites(5)
    journal = a_journal(tmp_path / "j", Disk(write=writes))

    def refuse(descriptor: int, size: int) -> None:
        raise OSError(5, "input/output error")

    monkeypatch.setattr(os, "ftruncate", refuse)
    with pytest.raises(DiskFull):
        journal.append("a", 1, [RunResumed()])
    writes.room = 1000
    with pytest.raises(RecordError, match="could not be taken back"):
        journal.append("a", 1, [RunResumed()])
    journal.close()
    assert (tmp_path / "j").stat().st_size == 5


def test_a_disk_that_fails_to_sync_records_nothing(tmp_path: Path) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(5, "input/output error")

    journal = a_journal(tmp_path / "j", Disk(sync=refuse))
    with pytest.raises(RecordError, match="input/output error"):
        journal.append("a", 1, [RunResumed()])
    journal.close()
    assert (tmp_path / "j").read_bytes() == b""


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_refused_in_both_directions(number: float) -> None:
    event = replace(judged("a0"), gain=number)
    with pytest.raises(RecordError):
        encode(event)
    spelled = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(number)]
    text = encode(judged("a0")).replace(b'"gain":0.0', b'"gain":' + spelled.encode())
    with pytest.raises(RecordError, match="here: no valid JSON"):
        decode_event("candidate_judged", text, "here")


@pytest.mark.parametrize("words", ["NaN is a word", "half an emoji \ud83d", "Infinity", "\u2028"])
def test_words_that_look_dangerous_are_only_words(words: str) -> None:
    event = IslandClosed(island="a", round=1, reason=words)
    assert decode_event("island_closed", encode(event), "here") == event


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("candidate_judge", b"{}"),
        ("run_ended", b'{"reason":"x"}'),
        ("run_ended", b'{"reason":"x","searched":"yes"}'),
        ("run_ended", b"[]"),
    ],
)
def test_what_is_no_event_is_refused_with_its_place(kind: str, data: bytes) -> None:
    with pytest.raises(RecordError, match="line 9"):
        decode_event(kind, data, "line 9")
