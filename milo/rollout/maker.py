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
    place, _, process = maker.partition("-")
    pid, _, start = process.partition("-")
    if len(place) != 3 * PART or not (_is_hex(pid) and _is_hex(start)):
        return True
    machine, boot, space = place[:PART], place[PART : 2 * PART], place[2 * PART :]
    if machine != _machine():
        return False
    if boot != _boot():
        return True
    if space != _space():
        return False
    number = int(pid, 16)
    return number == os.getpid() or _start(number) != str(int(start, 16))


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
