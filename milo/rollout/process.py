"""One child process on the event loop: started, captured, waited for, killed.

asyncio's own subprocesses start a thread per child on Python 3.11; a pidfd watched by the loop
costs nothing. Linux only (pidfd_open, kernel 5.3).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from milo.rollout.capture import Capture

READ_BYTES = 65536


class PidWatch:
    """Watches any process of this host by pid, child or not, until it is dead. One owner."""

    def __init__(self, pid: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._dead: asyncio.Future[None] = self._loop.create_future()
        self._fd = -1
        try:
            self._fd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._dead.set_result(None)
        else:
            self._loop.add_reader(self._fd, self._on_death)

    @property
    def fd(self) -> int:
        """The pidfd; -1 where the process was dead from the start, or after closing."""
        return self._fd

    @property
    def alive(self) -> bool:
        """Whether it has not been seen dead yet."""
        return not self._dead.done()

    async def dead(self, timeout_s: float) -> bool:
        """Wait for the death, at most so long; whether it came."""
        if not self._dead.done():
            await asyncio.wait((self._dead,), timeout=max(0.0, timeout_s))
        return self._dead.done()

    def kill(self) -> None:
        """SIGKILL, to this very process even where its pid has been reused since."""
        if self._fd >= 0 and self.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._fd, signal.SIGKILL)

    def close(self) -> None:
        """Give the descriptor back; safe to call twice."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _on_death(self) -> None:
        self._loop.remove_reader(self._fd)
        if not self._dead.done():
            self._dead.set_result(None)


class Stream:
    """Drains one pipe into a bounded capture, to its end. One owner."""

    def __init__(self, fd: int, capture: Capture) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self.capture = capture
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._on_data)

    def close(self) -> None:
        """Stop reading; safe to call twice."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if not self.ended.done():
            self.ended.set_result(None)

    def _on_data(self) -> None:
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self.capture.feed(data)
        else:
            self.close()


@contextlib.contextmanager
def nothing_blocked() -> Iterator[None]:
    """Blocks no signal in this thread meanwhile: a child is started with its starter's mask."""
    before = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Child:
    """A started child with its input closed and its output drained. One owner.

    `argv[0]` is looked up by the caller; raises `OSError` where it can't be started. No signal is
    blocked in it, whatever whoever started us blocked.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        output_bytes: int,
        cwd: str = "/",
        pass_fds: tuple[int, ...] = (),
    ) -> None:
        with nothing_blocked():
            self._popen = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=dict(env),
                cwd=cwd,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        self.pid = self._popen.pid
        self._watch = PidWatch(self.pid)
        self._out = self._stream(self._popen.stdout, output_bytes)
        self._err = self._stream(self._popen.stderr, output_bytes)

    async def wait(self, timeout_s: float) -> bool:
        """Wait for its end, at most so long; whether it has ended."""
        return await self._watch.dead(timeout_s)

    @property
    def code(self) -> int:
        """The exit code once it has ended; 128 + n where signal n ended it."""
        code = self._popen.wait()
        return code if code >= 0 else 128 - code

    @property
    def stdout(self) -> str:
        """What was kept of the standard output."""
        return self._out.capture.text()

    @property
    def stderr(self) -> str:
        """What was kept of the standard error."""
        return self._err.capture.text()

    def kill_group(self) -> None:
        """SIGKILL to its process group, as long as it has not been reaped."""
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def drained(self, timeout_s: float) -> None:
        """Wait until both streams have ended, at most so long."""
        waiting = [s.ended for s in (self._out, self._err) if not s.ended.done()]
        if waiting:
            await asyncio.wait(waiting, timeout=timeout_s)

    def close(self) -> None:
        """Reap it (it must be dead or dying) and give every descriptor back."""
        self._out.close()
        self._err.close()
        self._popen.wait()
        self._watch.close()

    @staticmethod
    def _stream(pipe: object, output_bytes: int) -> Stream:
        # The descriptor is taken over, so that the file object never closes a reused number.
        fd = os.dup(pipe.fileno())  # type: ignore[attr-defined]
        pipe.close()  # type: ignore[attr-defined]
        os.set_inheritable(fd, False)
        return Stream(fd, Capture(output_bytes))
