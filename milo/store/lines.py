"""Lines of JSON that carry their own checksum, and how a torn end of a file is told apart.

A writer that is killed leaves a prefix of what it was writing, so a last line without its line
end is torn. A power cut may also leave a hole; zero bytes never occur in JSON and mark one.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from milo.core.errors import RecordError

TAIL = len(b',"crc":"00000000"}\n')


def seal(body: bytes) -> bytes:
    """A JSON object (ending in ``}``) as a line with its checksum."""
    return b'%b,"crc":"%08x"}\n' % (body[:-1], zlib.crc32(body[:-1]))


def unseal(line: bytes, where: str) -> bytes:
    """The JSON object of a sealed line, without its checksum; raises `RecordError`."""
    head = line[:-TAIL]
    if line[-TAIL:] != b',"crc":"%08x"}\n' % zlib.crc32(head):
        raise RecordError(f"{where}: the line does not match its checksum")
    return head + b"}"


class Line(NamedTuple):
    """One whole line: its number from 1, its JSON object, and the offset of its first byte."""

    number: int
    body: bytes
    start: int


class LineReader:
    """Reads a `.jsonl` file once, line by line, from an offset on that `before` lines end at.

    After the iteration `end` is the offset behind the last whole line, and `torn` the number of
    bytes after it that a writer left unfinished (or is just writing).
    """

    def __init__(self, path: Path, *, start: int = 0, before: int = 0) -> None:
        self.path = path
        self.end = start
        self.torn = 0
        self._before = before

    def __iter__(self) -> Iterator[Line]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(self.end)
            for number, line in enumerate(file, start=self._before + 1):
                if not line.endswith(b"\n") or b"\0" in line:
                    self._refuse_hole_in_the_middle(number, file.tell(), size)
                    self.torn = max(size, self.end + len(line)) - self.end
                    return
                body = unseal(line, self.where(number))
                start, self.end = self.end, self.end + len(line)
                yield Line(number, body, start)

    def where(self, number: int) -> str:
        """How errors name a line."""
        return f"{self.path}, line {number}"

    def _refuse_hole_in_the_middle(self, number: int, position: int, size: int) -> None:
        if position < size:
            raise RecordError(f"{self.where(number)}: the line is broken and others follow it")


def torn_warning(path: Path, torn: int) -> tuple[str, ...]:
    """What to say of an unfinished end; nothing where there is none."""
    if not torn:
        return ()
    return (f"{path}: ignored {torn} bytes of a record that was not written to its end",)
