"""Keeps one model server: when its owner is gone, the server goes too, with all that it started.

``python -m milo.gateway.keeper COMMAND ...`` starts the command and waits for one of two ends: the
command's own (then it ends with the same code), or the closing of its standard input, by which the
owner says stop, and the system says that the owner was killed. Either way nothing of the command's
family is left: what its parents left behind becomes the keeper's own, and is killed with the rest.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

LOOK_S, GRACE_S = 0.1, 10.0
PARENT_DEATH_SIGNAL, CHILD_SUBREAPER = 1, 36
NOT_FOUND = 127
Control = Callable[..., Any]


def keep(argv: Sequence[str]) -> int:
    """Run the command until it ends or the owner is gone; its exit code."""
    # A handler and not SIG_IGN, which the command would inherit.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    control = _prctl()
    if control is not None:
        control(CHILD_SUBREAPER, 1)
    try:
        # This process has one thread, so that code before the exec is safe.
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            preexec_fn=_follow(control),  # noqa: PLW1509
        )
    except OSError as error:
        print(f"{argv[0]} can't be started: {error}", file=sys.stderr, flush=True)
        return NOT_FOUND
    while child.poll() is None and not _owner_gone():
        pass
    _end(child)
    return child.returncode


def _owner_gone() -> bool:
    """Whether standard input was closed; looks for a moment."""
    ready, _, _ = select.select([sys.stdin], [], [], LOOK_S)
    return bool(ready) and not os.read(sys.stdin.fileno(), 1024)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ask the command to end, then kill what is left of its family."""
    child.terminate()
    with suppress(subprocess.TimeoutExpired):
        child.wait(GRACE_S)
    _kill_descendants()
    child.wait()


def _kill_descendants() -> None:
    """Kill until nobody is left: who is orphaned meanwhile becomes ours."""
    import psutil

    while family := psutil.Process().children(recursive=True):
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=1.0)


def _prctl() -> Control | None:
    """Linux's call by which a process asks to hear of deaths; None elsewhere."""
    return ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def _follow(control: Control | None) -> Callable[[], None]:
    """What the command does before it is one: ask to be killed with the keeper."""
    keeper = os.getpid()

    def ask() -> None:
        if control is not None:
            control(PARENT_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(1)

    return ask


if __name__ == "__main__":
    sys.exit(keep(sys.argv[1:]))
