"""The journal: every event of every shard in one total order, appended in groups.

The n lines of one `append` are written by one call and made durable before it returns; a group
that is not whole at the end of the file was never acknowledged, and does not exist.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from milo.core.errors import RecordError
from milo.core.events import Event, Record
from milo.core.ports import Clock
from milo.store.codec import decode_event, dump_json, encode
from milo.store.files import AppendFile, Disk
from milo.store.lines import Line, LineReader, seal, torn_warning, unseal

TAIL_BYTES = 64 * 1024

_HEAD = re.compile(
    rb'\{"kind":"(\w+)","seq":(\d+),"time":([-+.\deE]+),"shard":("(?:[^"\\]|\\.)*"),'
    rb'"epoch":(\d+),"group":\[(\d+),(\d+)\],"event":'
)


class Entry(NamedTuple):
    """A journal line whose event is not yet decoded; `place` of `size` in its group."""

    line: Line
    kind: str
    seq: int
    time: float
    shard: str
    epoch: int
    place: int
    size: int
    event: bytes


class JournalReader:
    """Reads the journal's whole groups, from the first line to the end that exists now.

    After an iteration `end` is the offset behind the last whole group, `next_seq` the number the
    next record would get, and `warnings` what to say of an unfinished end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end = 0
        self.next_seq = 0
        self.warnings: tuple[str, ...] = ()

    def entries(self) -> Iterator[Entry]:
        """Undecoded lines of whole groups; raises `RecordError` naming a broken line."""
        lines = LineReader(self.path)
        self.end, self.next_seq, self.warnings = 0, 0, ()
        group: list[Entry] = []
        for line in lines:
            entry = _parse(line, lines.where(line.number))
            self._check_order(entry, len(group), lines)
            group.append(entry)
            if entry.place == entry.size:
                self.end, self.next_seq = lines.end, entry.seq + 1
                yield from group
                group = []
        self.warnings = torn_warning(self.path, lines.end + lines.torn - self.end)

    def records(self, from_seq: int = 0) -> Iterator[Record]:
        """Decoded records from a number on."""
        for entry in self.entries():
            if entry.seq >= from_seq:
                yield Record(
                    seq=entry.seq,
                    time=entry.time,
                    shard=entry.shard,
                    epoch=entry.epoch,
                    event=decode_event(
                        entry.kind, entry.event, f"{self.path}, line {entry.line.number}"
                    ),
                )

    def _check_order(self, entry: Entry, before: int, lines: LineReader) -> None:
        expected = self.next_seq + before
        if entry.seq != expected or entry.place != before + 1 or entry.place > entry.size:
            raise RecordError(
                f"{lines.where(entry.line.number)}: expected record {expected}, place "
                f"{before + 1} of its group, found record {entry.seq}, place {entry.place}"
            )


class Journal:
    """Appends to the journal. One owner; a torn end is cut off when it is opened."""

    def __init__(self, path: Path, disk: Disk, clock: Clock) -> None:
        reader = JournalReader(path)
        self.path = path
        self.epochs: dict[str, int] = {}
        for entry in reader.entries():
            self.epochs[entry.shard] = max(entry.epoch, self.epochs.get(entry.shard, 0))
        self.next_seq = reader.next_seq
        self.warnings = reader.warnings
        self._clock = clock
        self._file = AppendFile(path, disk, keep=reader.end)

    def append(self, shard: str, epoch: int, events: Sequence[Event]) -> tuple[Record, ...]:
        """Write a group durably and as a whole; raises `DiskFull` and leaves no trace of it."""
        now = self._clock.now()
        records = tuple(
            Record(seq=self.next_seq + i, time=now, shard=shard, epoch=epoch, event=event)
            for i, event in enumerate(events)
        )
        if records:
            size = len(records)
            self._file.append(b"".join(_line(r, i + 1, size) for i, r in enumerate(records)))
            self.next_seq += size
        return records

    def close(self) -> None:
        """Release the file."""
        self._file.close()


def last_seq(path: Path) -> int | None:
    """The number of the last record, read from the journal's end alone, -1 for an empty journal.

    None where the end is unfinished, so that only a reading of the whole tells.
    """
    size, want = path.stat().st_size, TAIL_BYTES
    if not size:
        return -1
    with path.open("rb") as file:
        while True:
            file.seek(max(0, size - want))
            lines = file.read(min(want, size)).splitlines(keepends=True)
            if len(lines) > 1 or want >= size:
                break
            want *= 4
    if not lines[-1].endswith(b"\n"):
        return None
    entry = _parse(Line(0, unseal(lines[-1], f"{path}, last line"), 0), f"{path}, last line")
    return entry.seq if entry.place == entry.size else None


def _line(record: Record, place: int, size: int) -> bytes:
    head = b'{"kind":"%b","seq":%d,"time":%b,"shard":%b,"epoch":%d,"group":[%d,%d],"event":%b}'
    return seal(
        head
        % (
            record.event.kind.encode(),
            record.seq,
            dump_json(float(record.time)),
            dump_json(record.shard),
            record.epoch,
            place,
            size,
            encode(record.event),
        )
    )


def _parse(line: Line, where: str) -> Entry:
    head = _HEAD.match(line.body)
    if head is None:
        raise RecordError(f"{where}: no journal record")
    kind, seq, time, shard, epoch, place, size = head.groups()
    return Entry(
        line=line,
        kind=kind.decode(),
        seq=int(seq),
        time=float(time),
        shard=json.loads(shard),
        epoch=int(epoch),
        place=int(place),
        size=int(size),
        event=line.body[head.end() : -1],
    )
