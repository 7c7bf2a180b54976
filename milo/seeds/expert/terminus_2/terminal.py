"""One terminal: bash behind a pseudo-terminal, typed into and read as text."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import termios
import time
from fcntl import ioctl

ROWS, COLUMNS = 40, 160
LIMIT = 10_000
CONTROL = {"C-c": "\x03", "C-d": "\x04"}
ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")
QUIET_S = 0.15
CHUNK = 65536


class Terminal:
    """A shell that stays: its folder, variables and jobs are as the last command left them."""

    def __init__(self) -> None:
        self.shown = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "dumb", "PS1": "$ ", "PAGER": "cat", "HISTFILE": ""})
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.read(1.0)

    def type(self, keystrokes: str) -> None:
        """Send keys. A line too long for the terminal's own line goes in as a whole all the same,
        since bash reads keys one by one."""
        data = CONTROL.get(keystrokes.strip(), keystrokes).replace("\n", "\r").encode()
        while data:
            self.drain()
            data = data[os.write(self.fd, data[:1024]) :]

    def drain(self) -> None:
        """Take what has been shown so far, so that the terminal can take keys."""
        while select.select([self.fd], [], [], 0)[0]:
            chunk = self._chunk()
            if not chunk:
                return
            self.shown += chunk

    def read(self, seconds: float) -> str:
        """What has been shown since the last look, after waiting: until the time is up, or until
        the prompt stands there and nothing more comes."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.fd], [], [], min(left, QUIET_S))[0]:
                chunk = self._chunk()
                if not chunk:
                    break
                self.shown += chunk
            elif self.shown.endswith(b"$ "):
                break
        text, self.shown = plain(self.shown.decode(errors="replace")), b""
        return text

    def _chunk(self) -> bytes:
        """b"" once the shell has ended."""
        try:
            return os.read(self.fd, CHUNK)
        except OSError:
            return b""

    def close(self) -> None:
        """End the shell and its jobs."""
        os.killpg(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def plain(text: str) -> str:
    """Terminal output as text: no escapes, no returns, the end of what is too long."""
    text = ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return text if len(text) <= LIMIT else f"[…]\n{text[-LIMIT:]}"
