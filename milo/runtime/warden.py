"""The warden: a small process that ends what a killed driver left behind.

Ray's daemons can outlive a driver that was killed with SIGKILL by minutes, and with them
everything that they started. The warden holds one end of a pipe; while the driver lives it keeps
a list of the driver's descendants, and when the pipe closes without a farewell it kills them. A
process is known by its id and its start time, so nobody else's is ever touched.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys

import psutil

FAREWELL = b"done"
LOOK_S = 2.0


class Warden:
    """The driver's end. Started once Ray is up; `dismiss` after everything was taken down."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "milo.runtime.warden", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """Let it end without doing anything; safe to call twice."""
        pipe = self._process.stdin
        if pipe is not None and not pipe.closed:
            with contextlib.suppress(BrokenPipeError):
                pipe.write(FAREWELL)
                pipe.close()
        self._process.wait()


def watch(driver: int, pipe: int) -> None:
    """Look at the driver's descendants until its pipe says farewell or breaks."""
    known: dict[int, psutil.Process] = {}
    while not select.select([pipe], [], [], LOOK_S)[0]:
        look(driver, known)
    if os.read(pipe, len(FAREWELL)) != FAREWELL:
        end(list(known.values()))


def look(driver: int, known: dict[int, psutil.Process]) -> None:
    """Add the driver's present descendants to those that are known, and forget the dead."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in psutil.Process(driver).children(recursive=True):
            if process.pid != os.getpid():
                known[process.pid] = process
    for pid in [pid for pid, process in known.items() if not process.is_running()]:
        del known[pid]


def end(processes: list[psutil.Process]) -> None:
    """Kill them and what they started meanwhile; parents first, so that nothing is replaced."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            later = process.children(recursive=True)
            for victim in (process, *later):
                with contextlib.suppress(psutil.NoSuchProcess):
                    victim.kill()


if __name__ == "__main__":
    watch(int(sys.argv[1]), sys.stdin.fileno())
