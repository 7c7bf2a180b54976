"""Who may write a run directory: one live process.

The lock is a kernel lock on the file `lock`, which a dead process can't hold, and the owner's
identity inside it, for the message and for file systems that share no kernel locks. A process id
alone would mistake a later process for the owner, so the boot and the start time go with it; and
so does the file's own number, since a copy of a run that goes on is a run that nobody drives.
"""

from __future__ import annotations

import fcntl
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from milo.core.errors import RecordError, RunError
from milo.store.codec import decode, encode


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """A process, told apart from every other that had or will have its id.

    `started` is in clock ticks since the boot; `boot` and `started` are empty where the system
    does not tell. `inode` is that of the lock which it holds, 0 in records of earlier versions.
    """

    pid: int
    host: str
    boot: str = ""
    started: str = ""
    inode: int = 0

    @classmethod
    def this_process(cls, inode: int = 0) -> Owner:
        """The process that asks, as the owner of a lock file."""
        pid, host = os.getpid(), socket.gethostname()
        return cls(pid=pid, host=host, boot=boot_id(), started=start_time(pid), inode=inode)

    @property
    def is_here(self) -> bool:
        """Whether the process runs, or ran, on this machine."""
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Whether the process runs on this machine now (False for another machine's)."""
        if not self.is_here or self.boot != boot_id():
            return False
        if self.started:
            return start_time(self.pid) == self.started
        return _exists(self.pid)


class RunLock:
    """The right to write one run directory, held until `release` or the process's death."""

    def __init__(self, path: Path) -> None:
        """Take it; raises `RunError` naming the live owner. A dead owner's lock is taken over."""
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._take()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Give it back; safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _take(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _refusal(self.path, read_owner(self.path)) from None
        former = read_owner(self.path)
        me = Owner.this_process(os.fstat(self._descriptor).st_ino)
        if former is not None and former != me and former.is_alive:
            raise _refusal(self.path, former)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, encode(me) + b"\n", 0)
        os.fdatasync(self._descriptor)

    def clear(self) -> None:
        """Take the owner's name off, so that a living process that closed its run holds nothing."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)


def read_owner(path: Path) -> Owner | None:
    """Who a lock file names; None where nobody, where it was never written to its end, or where it
    is the copy of a lock that lies elsewhere."""
    try:
        owner = decode(Owner, path.read_bytes().strip(), str(path))
        inode = path.stat().st_ino
    except (FileNotFoundError, RecordError):
        return None
    return owner if owner.inode in (0, inode) else None


def boot_id() -> str:
    """What distinguishes this boot of this machine; empty where the system does not tell."""
    return _read("/proc/sys/kernel/random/boot_id").strip()


def start_time(pid: int) -> str:
    """When a process started, in ticks since the boot; empty where there is none."""
    # The name in parentheses may hold spaces; the start time is field 22, the 20th after it.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else ""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _refusal(path: Path, owner: Owner | None) -> RunError:
    who = f"process {owner.pid} on {owner.host}" if owner else "another process"
    return RunError(f"run {path.parent}", "a run that no live process owns", f"{who} writing it")
