"""Which process made something on this host: a short name that tells the dead from the living.

What a run leaves carries the run's label, also after it was resumed elsewhere. Several hosts of
one run may share a scratch folder or an engine, and none may remove what another is using, so
everything carries its maker's name as well.
"""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path
from typing import NamedTuple

PART = 4
START_FIELD = 19
"""Where a process's start stands in what follows its name in /proc/PID/stat (field 22 of all)."""


def this_maker() -> str:
    """This process's name, which no other process ever has."""
    return maker_name(os.getpid())


def maker_name(pid: int) -> str:
    """``<machine, boot and space of pids>-<pid>-<start in clock ticks>``, in hexadecimal."""
    start = _start(pid)
    return f"{_machine()}{_boot()}{_space()}-{pid:x}-{int(start or 0):x}"


def is_abandoned(maker: str) -> bool:
    """Whether the maker is dead, or is this very process (which asks to be rid of its things).

    A name that can't be read belongs to nobody. Of another machine, or of processes that aren't
    seen from here, nothing is known, and their things are left alone.
    """
    named = _parsed(maker)
    return named is None or is_dead(maker) or (named.is_seen and named.pid == os.getpid())


def is_dead(maker: str) -> bool:
    """Whether the name can be read, and the process that it is of is known to be dead."""
    named = _parsed(maker)
    if named is None or named.machine != _machine():
        return False
    if named.boot != _boot():
        return True
    return named.is_seen and _start(named.pid) != str(named.start)


class _Maker(NamedTuple):
    """A maker's name, read."""

    machine: str
    boot: str
    space: str
    pid: int
    start: int

    @property
    def is_seen(self) -> bool:
        """Whether processes of its place are seen from here, by the same numbers."""
        return (self.machine, self.boot, self.space) == (_machine(), _boot(), _space())


def _parsed(maker: str) -> _Maker | None:
    place, _, process = maker.partition("-")
    pid, _, start = process.partition("-")
    if len(place) != 3 * PART or not (_is_hex(pid) and _is_hex(start)):
        return None
    parts = (place[:PART], place[PART : 2 * PART], place[2 * PART :])
    return _Maker(*parts, int(pid, 16), int(start, 16))


def _is_hex(text: str) -> bool:
    return bool(text) and all(c in "0123456789abcdef" for c in text)


def _machine() -> str:
    return _short(socket.gethostname() + _read("/etc/machine-id"))


def _boot() -> str:
    return _short(_read("/proc/sys/kernel/random/boot_id"))


def _space() -> str:
    """The namespace of process ids: the numbers of another one say nothing here."""
    try:
        return _short(os.readlink("/proc/self/ns/pid"))
    except OSError:
        return _short("")


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:PART]


def _start(pid: int) -> str:
    """ "" where there is no such process, or it is dead and not yet reaped."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return "" if len(fields) <= START_FIELD or fields[0] in "ZX" else fields[START_FIELD]


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
