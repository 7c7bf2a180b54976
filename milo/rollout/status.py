"""Bubblewrap's own report of a running sandbox: the pid of its init, the command's exit code."""

from __future__ import annotations

import asyncio
import json
import os

from milo.rollout.process import PidWatch


class StatusPipe:
    """The reading end of bubblewrap's ``--json-status-fd``. One owner.

    The init is watched from the moment it is named: when it is dead, all of its namespace is.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd, self.write_fd = os.pipe()
        self._text = b""
        self.init: PidWatch | None = None
        self.exit_code: int | None = None
        self.started_at: float | None = None
        self.named: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(self._fd, False)
        self._loop.add_reader(self._fd, self._on_data)

    def handed_over(self) -> None:
        """Close our copy of the writing end; safe to call twice."""
        if self.write_fd >= 0:
            os.close(self.write_fd)
            self.write_fd = -1

    def read_rest(self) -> None:
        """Read what bubblewrap wrote before it died."""
        while self._fd >= 0 and self._on_data():
            continue

    def close(self) -> None:
        """Give every descriptor back; safe to call twice."""
        self.handed_over()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if self.init is not None:
            self.init.close()

    def _on_data(self) -> bool:
        try:
            data = os.read(self._fd, 4096)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._fd)
            self._name()
            return False
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            self._take(line)
        return True

    def _name(self) -> None:
        """Wake who waits for the init: it is known now, or never will be."""
        if not self.named.done():
            self.named.set_result(None)

    def _take(self, line: bytes) -> None:
        said = json.loads(line)
        if "child-pid" in said and self.init is None:
            self.started_at = self._loop.time()
            self.init = PidWatch(said["child-pid"])
            self._name()
        if "exit-code" in said:
            self.exit_code = said["exit-code"]
