"""The warden: a small process that clears up after the process that it watches was killed.

Ray's daemons can outlive a driver that was killed with SIGKILL by minutes, and with them
everything that they started; a host that is killed leaves scratch folders behind, and containers.
The warden holds one end of a pipe. While its ward lives it keeps a list of the ward's descendants;
when the pipe closes without a farewell it kills them, and sweeps what the run's dead left on this
machine. A process is known by its id and its start time, so nobody else's is ever touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil

from milo.core.errors import MiloError

if TYPE_CHECKING:  # a warden is to stay small
    from milo.runtime.parts import Sweeper

FAREWELL = b"done"
LOOK_S = 2.0
END_S = 10.0
STUCK_S = 600.0
"""How long a killed process may take to die: the system holds some back in a read or a freeze."""
SWEEPS_AT_S = (0.0, 1.0, 5.0)
"""Seconds between sweeps: a later one catches what dies late, or an engine that comes back."""


class Warden:
    """The ward's end. `dismiss` after everything was taken down.

    The process is nobody's child: Ray kills the children of a worker that ends.
    """

    def __init__(self, sweeper: Sweeper) -> None:
        starter = subprocess.Popen(
            [sys.executable, "-m", "milo.runtime.warden", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert starter.stdin is not None
        self._pipe = starter.stdin
        words = pickle.dumps(sweeper)
        with contextlib.suppress(BrokenPipeError):
            self._pipe.write(len(words).to_bytes(8, "big") + words)
            self._pipe.flush()
        starter.wait()

    def dismiss(self) -> None:
        """Let it end without doing anything; safe to call twice."""
        if not self._pipe.closed:
            with contextlib.suppress(BrokenPipeError):
                self._pipe.write(FAREWELL)
                self._pipe.close()


def watch(ward: int, pipe: int, sweeper: bytes) -> None:
    """Look at the ward's descendants until its pipe says farewell or breaks."""
    known: dict[int, psutil.Process] = {}
    look(ward, known)
    while not select.select([pipe], [], [], LOOK_S)[0]:
        look(ward, known)
    if os.read(pipe, len(FAREWELL)) != FAREWELL:
        stuck = end(list(known.values()))
        sweep(pickle.loads(sweeper))
        if stuck:
            psutil.wait_procs(stuck, timeout=STUCK_S)
            sweep(pickle.loads(sweeper))


def look(ward: int, known: dict[int, psutil.Process]) -> None:
    """Add the ward's present descendants to those that are known, and forget the dead."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in psutil.Process(ward).children(recursive=True):
            if process.pid != os.getpid():  # at first its starter still binds it to the ward
                known[process.pid] = process
    for pid in [pid for pid, process in known.items() if not process.is_running()]:
        del known[pid]


def end(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Kill them and what they started meanwhile, parents first, so that nothing is replaced; who
    is not dead after ten seconds."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            later = process.children(recursive=True)
            for victim in (process, *later):
                with contextlib.suppress(psutil.NoSuchProcess):
                    victim.kill()
    _, alive = psutil.wait_procs(processes, timeout=END_S)
    return [process for process in alive if not _is_dead(process)]


def _is_dead(process: psutil.Process) -> bool:
    """Also where nobody has reaped it: a container may have no init that does."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def sweep(sweeper: Sweeper) -> None:
    """Sweep a few times; what can't be swept now, a resume sweeps at its start."""
    for pause_s in SWEEPS_AT_S:
        time.sleep(pause_s)
        with contextlib.suppress(MiloError, OSError):
            asyncio.run(sweeper.sweep())


def main(ward: int) -> None:
    """Take the sweeper from the pipe, leave the ward's family, and watch."""
    pipe = sys.stdin.fileno()
    sweeper = _read(pipe, int.from_bytes(_read(pipe, 8), "big"))
    if not os.fork():
        watch(ward, pipe, sweeper)


def _read(pipe: int, size: int) -> bytes:
    """Exactly so many bytes; what there is where the pipe breaks before."""
    data = b""
    while len(data) < size and (more := os.read(pipe, size - len(data))):
        data += more
    return data


if __name__ == "__main__":
    main(int(sys.argv[1]))
