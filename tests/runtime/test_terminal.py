"""`milo run` on a real terminal: what it draws there, Ctrl-C once and twice, and resizing."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from words import (
    MAIN,
    attempts_in,
    descendants,
    environment,
    script,
    serving,
    wait_gone,
    words_for,
    write_suite,
)

from milo.store import RunReader
from milo.testing.scripted_model import JSON, Answer

pytestmark = pytest.mark.timeout(900)
ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-_])")
CTRL_C = b"\x03"
OWN_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
"""Makes the pseudo-terminal the controlling one, so that its Ctrl-C reaches the process."""


class Terminal:
    """A pseudo-terminal with `milo` at work on it."""

    def __init__(self, words: list[str], cwd: Path) -> None:
        self.parent, child = pty.openpty()
        self.resize(100, 30)
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL + MAIN, *words],
            cwd=cwd,
            env=environment(TERM="xterm-256color", COLUMNS="", LINES=""),
            start_new_session=True,
            stdin=child,
            stdout=child,
            stderr=child,
        )
        os.close(child)
        self._raw = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self.parent, 65536)
            except OSError:
                return
            if not data:
                return
            self._raw += data

    @property
    def drawn(self) -> str:
        """Everything that was drawn so far, without colours and movements."""
        return ESCAPES.sub("", self._raw.decode(errors="replace"))

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.parent, keys)

    def resize(self, columns: int, lines: int) -> None:
        """Change the window; the programs in it are told."""
        fcntl.ioctl(self.parent, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, condition: Callable[[], bool], what: str, timeout_s: float = 400.0) -> None:
        """Wait until something holds; fails with what was drawn."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert self.process.poll() is None, f"ended before {what}:\n{self.drawn[-3000:]}"
            assert time.monotonic() < deadline, f"no {what}:\n{self.drawn[-3000:]}"
            time.sleep(0.05)

    def ends(self, timeout_s: float) -> int:
        """The exit code, with all of its last words read."""
        code = self.process.wait(timeout_s)
        self._reader.join(5)
        return code


@contextmanager
def terminal(words: list[str], cwd: Path) -> Iterator[Terminal]:
    opened = Terminal(words, cwd)
    try:
        yield opened
    finally:
        family = descendants(opened.process.pid)
        opened.process.kill()
        opened.process.wait(30)
        wait_gone(family)
        os.close(opened.parent)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_suite(tmp_path_factory.mktemp("suite"))


def test_a_run_is_drawn_resized_and_stopped_cleanly_by_one_ctrl_c(
    suite: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with (
        serving() as server,
        terminal(words_for(server, suite, "run", "budget.rounds=40"), tmp_path) as screen,
    ):
        screen.until(lambda: attempts_in(run) >= 12, "12 attempts")
        for columns, lines in ((40, 12), (9, 4), (200, 60), (80, 24)):
            screen.resize(columns, lines)
            time.sleep(1.2)
        screen.until(lambda: "elapsed" in screen.drawn, "header")
        screen.type(CTRL_C)
        assert screen.ends(90) == 130
        drawn = screen.drawn
    assert "Traceback" not in drawn
    for words in ("MILO run", "slots", "/4 busy", "attempts", "tokens", "island", "stall", "val %"):
        assert words in drawn, words
    assert "attempts that run may end" in drawn
    assert "stopped: interrupted; go on with: milo resume" in drawn
    assert drawn.count("\n") > 10
    with RunReader(run) as reader:
        assert reader.owner() is None
        assert reader.population().ended is None
        assert all(outcome.is_valid for outcome in reader.attempts.iter())


QUICK = 8


def slow(request: JSON, nth: int) -> Answer:
    """A model that answers the first calls at once and then keeps everybody waiting."""
    answer = script(request, nth)
    return answer if nth < QUICK else replace(answer, latency_s=45.0)


def test_ctrl_c_twice_stops_now(suite: Path, tmp_path: Path) -> None:
    """A user who asks twice must not wait for attempts that take half an hour."""
    run = tmp_path / "run"
    with (
        serving(slow) as server,
        terminal(words_for(server, suite, "run", "budget.rounds=40"), tmp_path) as screen,
    ):
        screen.until(lambda: attempts_in(run) >= 5, "5 attempts")
        screen.until(lambda: len(server.tally.headers) > QUICK, "call that is kept waiting")
        screen.type(CTRL_C)
        screen.until(lambda: "once more stops now" in screen.drawn, "answer to Ctrl-C", 20)
        time.sleep(2.0)
        assert screen.process.poll() is None, "the attempts that run may still end"
        family = descendants(screen.process.pid)
        began = time.monotonic()
        screen.type(CTRL_C)
        assert screen.ends(30) == 130
        assert time.monotonic() - began < 20
        wait_gone(family)
        drawn = screen.drawn
    assert "Traceback" not in drawn
    assert "milo resume" in drawn
    with RunReader(run) as reader:
        assert reader.owner() is None
        assert reader.attempts.count >= 5


def test_without_a_terminal_each_event_is_one_plain_line(suite: Path, tmp_path: Path) -> None:
    with serving() as server:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *words_for(server, suite, "run", "budget.rounds=1")],
            cwd=tmp_path,
            env=environment(TERM="xterm-256color"),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout and "\r" not in done.stdout
    with RunReader(tmp_path / "run") as reader:
        records = list(reader.records())
    events = [line for line in done.stdout.splitlines() if re.match(r"\[\d+:\d\d", line)]
    assert len(events) == len(records)
