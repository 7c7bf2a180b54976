"""The journal: every event of every shard in one total order, appended in groups.

The n lines of one `append` are written by one call and made durable before it returns; a group
that is not whole at the end of the file was never acknowledged, and does not exist.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from milo.core.errors import RecordError
from milo.core.events import Event, Record
from milo.core.ports import Clock
from milo.store.codec import decode_event, dump_json, encode
from milo.store.files import AppendFile, Disk
from milo.store.lines import Line, LineReader, seal, torn_warning

BLOCK_BYTES = 1024 * 1024

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


class JournalMark(NamedTuple):
    """A place between two groups: how many records lie before it, in how many bytes, and the
    CRC-32 of those bytes, by which a reader knows that they are still the same."""

    records: int = 0
    offset: int = 0
    crc: int = 0

    def holds(self, path: Path) -> bool:
        """Whether the journal begins with the very bytes that the mark was set after."""
        if not path.exists() or path.stat().st_size < self.offset:
            return False
        return _crc(path, 0, self.offset, 0) == self.crc

    def advanced(self, path: Path, records: int) -> JournalMark:
        """The mark after so many records; this one where the journal has no group that ends so."""
        reader = JournalReader(path, self)
        for entry in reader.entries():
            if entry.place == entry.size and entry.seq + 1 == records:
                crc = _crc(path, self.offset, reader.end, self.crc)
                return JournalMark(records, reader.end, crc)
        return self


class JournalReader:
    """Reads the journal's whole groups, from the first line (or a mark) to the end that exists now.

    After an iteration `end` is the offset behind the last whole group, `next_seq` the number the
    next record would get, and `warnings` what to say of an unfinished end.
    """

    def __init__(self, path: Path, since: JournalMark = JournalMark()) -> None:  # noqa: B008
        self.path = path
        self._since = since
        self.end = since.offset
        self.next_seq = since.records
        self.warnings: tuple[str, ...] = ()

    def entries(self) -> Iterator[Entry]:
        """Undecoded lines of whole groups; raises `RecordError` naming a broken line."""
        since = self._since
        lines = LineReader(self.path, start=since.offset, before=since.records)
        self.end, self.next_seq, self.warnings = since.offset, since.records, ()
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


def _crc(path: Path, start: int, end: int, crc: int) -> int:
    """The CRC-32 of a stretch of a file, going on from that of what lies before it."""
    with path.open("rb") as file:
        file.seek(start)
        while start < end and (block := file.read(min(BLOCK_BYTES, end - start))):
            crc, start = zlib.crc32(block, crc), start + len(block)
    return crc if start == end else -1


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
